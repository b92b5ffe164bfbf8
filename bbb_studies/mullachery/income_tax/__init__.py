"""Vermont's income tax per return."""
