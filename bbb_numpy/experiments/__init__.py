"""Runs that reproduce what the source documents claim (floor 5)."""
