"""Plots: every function draws on the Axes that it is given, and returns it.

`fits` plots predictions with data, `calibration` reliability and coverage, `dependence` the mean
prediction against one column; `style` holds colours, legends and axes that all plots share.
"""
