"""Is the next day's direction predictable from past prices? (D38)."""
