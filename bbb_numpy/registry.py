"""Names of parts, estimators, objectives, optimizers, samplers, ..., by family.

Each module lists its own in a table NAMED (`numeric.named`), and `FAMILIES` puts the tables
together. The learners, their files, the command line, the check of all combinations, the tests and
the generated pages read it. `register` adds a class of your own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from types import FunctionType
from typing import Any

from . import gradients, model, parts, training
from .gradients.estimator import GradientEstimator
from .numeric.deprecation import renamed_arguments
from .numeric.named import names_in
from .numeric.validation import FUNCTION, Check, HasMethods, InstanceOf, OneOf
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
# Names of tests that compare every entry of a family with its formula in tests/textbook.py
VALUE_TEST = (
    "tests/gradients/test_exact.py::test_every_value_is_the_textbook_formula_exactly"
)
GRADIENT_TEST = (
    "tests/gradients/test_exact.py::test_every_gradient_is_that_of_its_value_exactly"
)
ACTIVATION_TEST = (
    "tests/parts/test_activations.py::"
    "test_every_value_is_proved_to_be_the_textbook_formula"
)
OPTIMIZER_TEST = (
    "tests/training/test_optimizers.py::test_a_rule_moves_as_the_textbook_says"
)
PROPOSAL_TEST = (
    "tests/sampling/mcmc/test_metropolis.py::"
    "test_the_log_ratio_is_that_of_the_textbooks_q"
)


@dataclass(frozen=True)
class Entries:
    """Named objects that an argument such as `prior` accepts.

    Parameters
    ----------
    check : callable
        Function of an argument's name and value that raises an error unless the value has the right
        class, or methods.
    checked_by : str
        Kind of proof, and name of the test that compares every entry with its formula in
        ``tests/textbook.py``. Empty if each entry has a test of its own, marked with its equation.
    named : dict
        Object that each name stands for.
    checked : dict
        Object of the same class for each name, with numbers of about unit size, which checks use.
    """

    check: Check
    checked_by: str = ""
    named: Table = field(default_factory=dict)
    checked: Table = field(default_factory=dict)

    def add(self, name: str, entry: Any, checked: Any) -> None:
        """Add an entry, and ``name-learned``, a copy with learn=True, if it has the field `learn`.

        Parameters
        ----------
        name : str
            Name of the entry.
        entry : object or None
            Object that the name stands for; None if only checks use the name.
        checked : object
            Object of the same class with numbers of about unit size, which checks use.
        """
        self.named.update({} if entry is None else {name: entry})
        self.checked[name] = checked
        if hasattr(checked, "learn") and not checked.learn:
            self.add(
                f"{name}-learned",
                *(replace(part, learn=True) for part in (entry, checked)),
            )


def class_of(entry: Any) -> Any:
    """Return the class of `entry`; a class or function itself, also that of a `partial`."""
    if isinstance(entry, partial):
        entry = entry.func
    if isinstance(entry, type | FunctionType):
        return entry
    return type(entry)


def _check_class(predicate: Callable[[type], bool], expected: str) -> Check:
    """Return a check that accepts only classes for which `predicate` is true, else TypeError.

    Parameters
    ----------
    predicate : callable
        Function of a class that returns whether it is accepted.
    expected : str
        Description of the accepted classes, for the message.
    """

    def check(name: str, value: Any) -> Any:
        cls = class_of(value)
        if cls is type(value) or not (isinstance(cls, type) and predicate(cls)):
            raise TypeError(f"{name} must be {expected}; got {value!r}")
        return value

    return check


ESTIMATOR = _check_class(
    lambda cls: issubclass(cls, GradientEstimator), "a class of estimators"
)
STATE = _check_class(
    lambda cls: hasattr(cls, "__match_args__"), "a named tuple or a dataclass"
)

FAMILIES: dict[str, Entries] = {
    "posterior": Entries(InstanceOf(Posterior), f"exact arithmetic, {GRADIENT_TEST}"),
    "prior": Entries(InstanceOf(Prior), f"exact arithmetic, {VALUE_TEST}"),
    "likelihood": Entries(InstanceOf(Likelihood), f"exact arithmetic, {VALUE_TEST}"),
    "hyperprior": Entries(
        HasMethods("HalfNormal(1.0)", "log_density", "slope", "draw")
    ),
    "activation": Entries(
        FUNCTION, f"exact arithmetic, {ACTIVATION_TEST}", ACTIVATIONS
    ),
    "objective": Entries(
        HasMethods("FreeEnergy()", "__call__"), f"exact arithmetic, {VALUE_TEST}"
    ),
    "estimator": Entries(ESTIMATOR, f"exact arithmetic, {GRADIENT_TEST}"),
    "kl_weights": Entries(FUNCTION),
    "kl_warm_up": Entries(FUNCTION),
    "optimizer": Entries(OPTIMIZER, f"checked, {OPTIMIZER_TEST}"),
    "schedule": Entries(SCHEDULE),
    "stopping": Entries(InstanceOf(EarlyStopping)),
    "sampler": Entries(HasMethods("HMC()", "init", "step"), "", SAMPLERS),
    "proposal": Entries(
        HasMethods("GaussianWalk()", "propose"), f"checked, {PROPOSAL_TEST}"
    ),
    "state": Entries(STATE, "", STATES),
}
POSTERIORS = FAMILIES["posterior"].named
PRIORS = FAMILIES["prior"].named
LIKELIHOODS = FAMILIES["likelihood"].named
OBJECTIVES = FAMILIES["objective"].named
ESTIMATORS = FAMILIES["estimator"].named
OPTIMIZERS = FAMILIES["optimizer"].named
KL_WEIGHTS = FAMILIES["kl_weights"].named
WARM_UPS = FAMILIES["kl_warm_up"].named
CHECKED_POSTERIORS = FAMILIES["posterior"].checked
CHECKED_PRIORS = FAMILIES["prior"].checked
CHECKED_LIKELIHOODS = FAMILIES["likelihood"].checked
CHECKED_OBJECTIVES = FAMILIES["objective"].checked
for _package in (parts, model, gradients, training, mcmc):
    for _family, _table in names_in(_package).items():
        for _name, _pair in _table.items():
            FAMILIES[_family].add(_name, *_pair)
# (family, name) of each entry that a user has added with `register`
REGISTERED: list[tuple[str, str]] = []
SHIPPED = {
    (family, name) for family, entries in FAMILIES.items() for name in entries.checked
}


def classes(*families: str) -> tuple[Any, ...]:
    """Return the distinct classes and functions of all entries of families, by default of all."""
    distinct: dict[Any, None] = {}  # an ordered set: keys of a dict
    for family in families or FAMILIES:
        entries = FAMILIES[family]
        for entry in (*entries.named.values(), *entries.checked.values()):
            distinct[class_of(entry)] = None
    return tuple(distinct)


SHIPPED_CLASSES = {cls.__name__: cls for cls in classes()}


@renamed_arguments(usual="entry")
def register(family: str, name: str, entry: Any, checked: Any = None) -> None:
    """Add a named part of your own to a family.

    Learners then accept the name, and `bbb_numpy.save`, `load` and checkpoints store the part.
    ``bbb-numpy --plugin FILE`` runs a file that calls `register`, before its subcommand:
    options then accept the name, and ``gradcheck --all --exact`` proves every combination with it.
    Before a saved file with the class is loaded, the class has to be registered, as files never
    name code to run.

    Parameters
    ----------
    family : str
        One of 'posterior', 'prior', 'likelihood', 'hyperprior', 'activation', 'objective',
        'estimator', 'kl_weights', 'kl_warm_up', 'optimizer', 'schedule', 'stopping', 'sampler',
        'proposal', 'state'.
    name : str
        Name of the part. A copy that learns its numbers (``learn=True``) is added as
        ``name-learned`` if the class has a field `learn`.
    entry : object
        Object that the name stands for: for most families an instance of a frozen dataclass, for
        activations and KL weights a function, and for estimators and states of chains a class.
    checked : object, optional
        Object of the same class with numbers of about unit size, which checks use; by default
        `entry`.

    Raises
    ------
    TypeError
        If the object does not suit the family, or is not an instance of a dataclass.
    ValueError
        If there is no such family, or the package has an entry or a class of that name.

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
    entries = FAMILIES[OneOf(*FAMILIES)("family", family)]
    checked = entry if checked is None else checked
    for argument, candidate in (("entry", entry), ("checked", checked)):
        cls = class_of(entries.check(argument, candidate))
        if cls is type(candidate) and not is_dataclass(cls):
            raise TypeError(
                f"{argument} must be an instance of a dataclass, so that files can store its "
                f"fields; got {candidate!r}"
            )
        if (
            not cls.__name__.isidentifier()
            or SHIPPED_CLASSES.get(cls.__name__, cls) is not cls
        ):
            raise ValueError(
                f"the class or function of {argument} must have as its name an identifier that no "
                f"class of the package has; got {cls.__name__}: rename it"
            )
    if not isinstance(name, str) or (family, name) in SHIPPED:
        raise ValueError(
            f"name must be a string that no {family} of the package has as its name; got {name!r}"
        )
    entries.add(name, entry, checked)
    REGISTERED.append((family, name))
