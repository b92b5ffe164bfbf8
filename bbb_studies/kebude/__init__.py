"""Kebude's report, Section 8: its figures, its claims, and the numbers behind them."""
