"""Training: from the gradients of an estimator to trained parameters theta.

`loop` has `fit`, and the descent epoch by epoch. `minibatches` cuts the data into minibatches.
`recipe` has the settings of training, `schedules` their defaults, `optimizers` the update rules
(K43, K44). `state` has the state and the history of training, `stopping` early stopping. `laplace`
fits a Gaussian around a trained network. `ensembles` trains starting points for samplers.
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
