"""From gradients to a trained theta.

`loop`: `fit`, epochs and minibatches. `recipe`: its settings. `optimizers`: the update rules (K43,
K44). `state`: what training changes and records. `stopping`: when it ends early. `ensembles`:
starts for samplers.
"""

from .loop import fit, start
from .recipe import Recipe
from .state import Epoch, NonFiniteError, Training
from .stopping import EarlyStopping

__all__ = [
    "EarlyStopping",
    "Epoch",
    "NonFiniteError",
    "Recipe",
    "Training",
    "fit",
    "start",
]
