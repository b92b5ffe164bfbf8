"""From gradients to a trained theta.

`loop`: `fit`, and the descent epoch by epoch. `minibatches`: what a step is taken on. `recipe`: the
settings of training. `optimizers`: the update rules (K43, K44). `state`: what training changes and
records. `stopping`: when it ends early. `laplace`: a Gaussian around a trained network.
`ensembles`: starts for samplers.
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
