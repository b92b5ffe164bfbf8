"""A radio field over a plane with buildings (W6)."""
