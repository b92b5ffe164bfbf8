"""Krasser's post: one period of a sine, with a learned scale mixture prior."""
