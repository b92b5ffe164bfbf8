"""What a posterior predicts, and whether to believe it.

`predictive`: moments, functions (D4, D5). `calibration`, `reliability`: are they right?
`recalibration`: what held-out rows correct. `convergence`: have the chains mixed? `model_checks`:
what the model can say before and after the data. `pruning`: which weights matter. `what_matters`:
which columns do. `arviz_export`: draws in ArviZ's container.
"""
