"""The progress bar of tqdm."""

import warnings

from tqdm import TqdmWarning

with warnings.catch_warnings():  # a notebook without ipywidgets gets the plain bar
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm

__all__ = ["tqdm"]
