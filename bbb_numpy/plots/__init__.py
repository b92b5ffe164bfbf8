"""Pictures: every function draws on the Axes that it is given, and returns it.

`fits`, `calibration`. `style`: what all have in common.
"""
