"""Markov chain Monte Carlo on any log density with its gradient.

A *target* is a function from positions (S, D) of S chains to log densities (S,), in nats, and
gradients (S, D): a `model.log_joint.LogJoint`, or a function of your own (`Target`). A *kernel* is
a frozen dataclass with two methods (`Kernel`) ::

    init(target, position) -> state
    step(target, rng, state) -> (state, info)

and, if a warm-up can tune it, a third (`Adaptable`), which returns an object with the attribute
`kernel`, for the next draw, and a method ``update(target, rng, state, info)`` (`Adaptation`) ::

    adapt(target, rng, state, warm_up, *, dense, target_accept) -> adaptation

All are pure: the same arguments, with the generator in the same state, give the same results.
"""

from .adaptation import Adaptation
from .chees import ChEES
from .hmc import HMC
from .leapfrog import Phase, hamiltonian, leapfrog
from .metrics import DenseMetric, DiagonalMetric, Metric
from .metropolis import GaussianWalk, Langevin, LogNormalWalk, MetropolisHastings
from .microcanonical import MAMS, MCLMC
from .nuts import NUTS
from .states import Info, Kernel, State, Target, init
from .stochastic import SGHMC

__all__ = [
    "HMC",
    "MAMS",
    "MCLMC",
    "NUTS",
    "SGHMC",
    "Adaptation",
    "ChEES",
    "DenseMetric",
    "DiagonalMetric",
    "GaussianWalk",
    "Info",
    "Kernel",
    "Langevin",
    "LogNormalWalk",
    "Metric",
    "MetropolisHastings",
    "Phase",
    "State",
    "Target",
    "hamiltonian",
    "init",
    "leapfrog",
]
