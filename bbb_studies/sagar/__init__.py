"""Sagar's Algorithm 1, as printed and corrected, where the posterior is known."""
