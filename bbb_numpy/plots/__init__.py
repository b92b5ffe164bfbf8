"""Plots: every function draws on the Axes that it is given, and returns it.

`fits` plots predictions with data, `calibration` reliability and coverage; `style` holds colours,
legends and axes that all plots share.
"""
