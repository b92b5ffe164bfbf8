"""Occam's razor: evidence against the complexity of the data (M20, M21)."""
