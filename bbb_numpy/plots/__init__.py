"""Pictures: every function draws on the Axes that it is given, and returns it.

`fits`: fits and loss curves. `calibration`, `weights`. `style`: what all have in common.
"""
