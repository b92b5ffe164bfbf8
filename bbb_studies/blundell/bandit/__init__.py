"""Thompson sampling among mushrooms."""
