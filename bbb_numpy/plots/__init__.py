"""Pictures: every function draws on the Axes that it is given, and returns it.

`fits`: fits, loss curves and the style of all. `calibration`, `weights`.
"""
