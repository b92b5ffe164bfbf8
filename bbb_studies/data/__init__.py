"""Data sets: the toy problems of the sources, a radio field over a plane, and real data.

`toys` and `path_loss` are made up. `uci`, `powerball`, `mnist`, `mushroom` are read from files,
which `locate` finds or downloads.
"""
