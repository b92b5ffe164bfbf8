"""The bounds around the evidence (D25, D28, G6)."""
