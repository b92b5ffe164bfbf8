"""A coin, with and without conjugacy (M18, M19)."""
