"""Everything that has a name: parts, estimators, objectives, optimizers, samplers, ...

Each module lists what it defines in a table NAMED (`numeric.named`); here they are put together by
family. The learners, their files, the command line, the check of all combinations, the tests and
the generated pages read `FAMILIES`. `register` adds a class of one's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from types import FunctionType
from typing import Any

from . import gradients, model, parts, training
from .gradients.estimator import GradientEstimator
from .numeric.named import names_in
from .numeric.validation import FUNCTION, HasMethods, InstanceOf, OneOf, Rule
from .parts.activations import ACTIVATIONS
from .parts.likelihoods import Likelihood
from .parts.posteriors import Posterior
from .parts.priors import Prior
from .sampling import mcmc
from .sampling.resuming import STATES
from .sampling.run import SAMPLERS
from .training.optimizers import OPTIMIZER, SCHEDULE
from .training.stopping import EarlyStopping

__all__ = ["FAMILIES", "Entries", "class_of", "classes", "register"]

Table = dict[str, Any]
VALUES = (
    "tests/gradients/test_exact.py::test_every_value_is_the_textbook_formula_exactly"
)
GRADIENTS = (
    "tests/gradients/test_exact.py::test_every_gradient_is_that_of_its_value_exactly"
)
FORMULAS = "tests/parts/test_activations.py::test_every_value_is_proved_to_be_the_textbook_formula"
RULES = "tests/training/test_optimizers.py::test_a_rule_moves_as_the_textbook_says"
RATIOS = "tests/sampling/mcmc/test_metropolis.py::test_the_log_ratio_is_that_of_the_textbooks_q"


@dataclass(frozen=True)
class Entries:
    """What can stand for one argument.

    Parameters
    ----------
    rule : callable
        The check of an entry: its class, or the methods that it has.
    checked_by : str
        The kind of proof, and the test that compares every entry with its formula in
        ``tests/textbook.py``. Empty: a test of its own does, which is marked with its equation.
    named : dict
        By name, what the name stands for.
    checked : dict
        By name, the same with numbers of about unit size, for checks.
    """

    rule: Rule
    checked_by: str = ""
    named: Table = field(default_factory=dict)
    checked: Table = field(default_factory=dict)

    def add(self, name: str, usual: Any, checked: Any) -> None:
        """Add an entry, and if it can learn its numbers another one that does."""
        self.named.update({} if usual is None else {name: usual})
        self.checked[name] = checked
        if hasattr(checked, "learn") and not checked.learn:
            self.add(
                f"{name}-learned",
                *(replace(one, learn=True) for one in (usual, checked)),
            )


def class_of(entry: Any) -> Any:
    """Return the class of a named object; a class or a function is its own."""
    made = entry.func if isinstance(entry, partial) else entry
    return made if isinstance(made, type | FunctionType) else type(made)


def _class(holds: Callable[[type], bool], wanted: str) -> Rule:
    """Return a check for a class of which `holds` is true."""

    def check(name: str, value: Any) -> Any:
        made = class_of(value)
        if made is type(value) or not (isinstance(made, type) and holds(made)):
            raise TypeError(f"{name} must be {wanted}; got {value!r}")
        return value

    return check


ESTIMATOR = _class(
    lambda made: issubclass(made, GradientEstimator), "a class of estimators"
)
STATE = _class(
    lambda made: hasattr(made, "__match_args__"), "a named tuple or a dataclass"
)

FAMILIES: dict[str, Entries] = {
    "posterior": Entries(InstanceOf(Posterior), f"exact arithmetic, {GRADIENTS}"),
    "prior": Entries(InstanceOf(Prior), f"exact arithmetic, {VALUES}"),
    "likelihood": Entries(InstanceOf(Likelihood), f"exact arithmetic, {VALUES}"),
    "hyperprior": Entries(
        HasMethods("HalfNormal(1.0)", "log_density", "slope", "draw")
    ),
    "activation": Entries(FUNCTION, f"exact arithmetic, {FORMULAS}", ACTIVATIONS),
    "objective": Entries(
        HasMethods("FreeEnergy()", "__call__"), f"exact arithmetic, {VALUES}"
    ),
    "estimator": Entries(ESTIMATOR, f"exact arithmetic, {GRADIENTS}"),
    "kl_weights": Entries(FUNCTION),
    "kl_warm_up": Entries(FUNCTION),
    "optimizer": Entries(OPTIMIZER, f"checked, {RULES}"),
    "schedule": Entries(SCHEDULE),
    "stopping": Entries(InstanceOf(EarlyStopping)),
    "sampler": Entries(HasMethods("HMC()", "init", "step"), "", SAMPLERS),
    "proposal": Entries(HasMethods("GaussianWalk()", "propose"), f"checked, {RATIOS}"),
    "state": Entries(STATE, "", STATES),
}
POSTERIORS, CHECKED_POSTERIORS = (
    FAMILIES["posterior"].named,
    FAMILIES["posterior"].checked,
)
PRIORS, CHECKED_PRIORS = FAMILIES["prior"].named, FAMILIES["prior"].checked
LIKELIHOODS, CHECKED_LIKELIHOODS = (
    FAMILIES["likelihood"].named,
    FAMILIES["likelihood"].checked,
)
OBJECTIVES, CHECKED_OBJECTIVES = (
    FAMILIES["objective"].named,
    FAMILIES["objective"].checked,
)
ESTIMATORS, OPTIMIZERS = FAMILIES["estimator"].named, FAMILIES["optimizer"].named
KL_WEIGHTS, WARM_UPS = FAMILIES["kl_weights"].named, FAMILIES["kl_warm_up"].named
for _package in (parts, model, gradients, training, mcmc):
    for _family, _table in names_in(_package).items():
        for _name, _pair in _table.items():
            FAMILIES[_family].add(_name, *_pair)
REGISTERED: list[tuple[str, str]] = []  # families and names that `register` has added
SHIPPED = {(family, name) for family, one in FAMILIES.items() for name in one.checked}


def classes(*families: str) -> tuple[Any, ...]:
    """Return the classes and functions of which the entries of families are, by default of all."""
    tables = [
        one
        for name in families or FAMILIES
        for one in (FAMILIES[name].named, FAMILIES[name].checked)
    ]
    return tuple(
        dict.fromkeys(class_of(entry) for table in tables for entry in table.values())
    )


SHIPPED_CLASSES = {made.__name__: made for made in classes()}


def register(family: str, name: str, usual: Any, checked: Any = None) -> None:
    """Give an object, a class or a function of one's own a name.

    Learners then take it by its name, and `bbb_numpy.save`, `load` and checkpoints keep it.
    ``bbb-numpy --plugin FILE`` runs a file that registers, before its subcommand: options take
    the name, and ``gradcheck --all --exact`` proves every combination with it. Whoever loads a
    file with the class in it registers it first: no file names code to run.

    Parameters
    ----------
    family : str
        One of 'posterior', 'prior', 'likelihood', 'hyperprior', 'activation', 'objective',
        'estimator', 'kl_weights', 'kl_warm_up', 'optimizer', 'schedule', 'stopping', 'sampler',
        'proposal', 'state'.
    name : str
        By which it is called. What learns its numbers (``learn=True``) is called ``name-learned``.
    usual : object
        What the name stands for: an object of a frozen dataclass; of an activation or KL weights
        a function; of an estimator, or of what chains carry ('state'), a class.
    checked : object, optional
        The same with numbers of about unit size, for checks; by default `usual`.

    Raises
    ------
    TypeError
        If the object is not what the family wants, or no dataclass.
    ValueError
        If there is no such family, or the package has a name or class of that name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from bbb_numpy import BayesianMLPRegressor, LaplacePrior, register
    >>> @dataclass(frozen=True)
    ... class Narrow(LaplacePrior):
    ...     scale: float = 0.01
    >>> register("prior", "narrow", Narrow())
    >>> BayesianMLPRegressor(prior="narrow").get_params()["prior__scale"]
    0.01
    """
    to = FAMILIES[OneOf(*FAMILIES)("family", family)]
    checked = usual if checked is None else checked
    for argument, one in (("usual", usual), ("checked", checked)):
        made = class_of(to.rule(argument, one))
        if made is type(one) and not is_dataclass(made):
            raise TypeError(
                f"{argument} must be of a dataclass, whose fields files hold; got {one!r}"
            )
        if (
            not made.__name__.isidentifier()
            or SHIPPED_CLASSES.get(made.__name__, made) is not made
        ):
            raise ValueError(
                f"{argument} needs a name that the package has not; got {made.__name__}"
            )
    if not isinstance(name, str) or (family, name) in SHIPPED:
        raise ValueError(
            f"name must be text that is no {family} of the package; got {name!r}"
        )
    to.add(name, usual, checked)
    REGISTERED.append((family, name))
