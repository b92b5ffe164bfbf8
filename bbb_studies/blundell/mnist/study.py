"""MNIST as Blundell et al. (2015, Section 5.1) classify it: SGD, MAP, Bayes by Backprop; pruning.

Of each method a few candidates are trained briefly; the one that makes the fewest errors on the
validation images is trained on. Test images are looked at once, when all training is over. After
every epoch the state is stored, so that the same call goes on after an interruption.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bbb_numpy.numeric.files import check_regular, write_json
from bbb_numpy.progress import tqdm
from bbb_studies.data import mnist as data
from bbb_studies.data.mnist import MNIST

from . import plots, tables
from .models import (
    CANDIDATES,
    FORMAT,
    FULL,
    METHODS,
    Candidate,
    Run,
    Settings,
    classes_of_mean,
    load,
    save,
    train_epoch,
)
from .scores import Images, measure

__all__ = ["DIVISOR", "full", "prepare", "reproduce", "train_all"]

DIVISOR = 126  # of the pixels, as in the paper
COST = {"SGD": 10, "MAP": 20, "BBB": 30}  # of an epoch, roughly; for the time left
FINISHED, SETTINGS = "numbers.json", "settings.json"


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for the paper's budget: 600 epochs of each method."""
    return {"settings": Settings(seed, search=10, epochs=(600, 600, 600)), "candidates": FULL}


def cost(candidate: Candidate) -> int:
    """Return what an epoch costs, roughly, for the time left."""
    return COST[candidate.method] + 20 * (candidate.samples - 1)


def prepare(found: MNIST, settings: Settings) -> Images:
    """Cut the training images into a training and a validation part, and scale all.

    Raises
    ------
    ValueError
        If there are fewer images than the settings ask for.
    """
    rows, held_out = len(found.train_images), settings.validation
    if settings.train + held_out > rows or settings.test > len(found.test_images):
        raise ValueError(
            f"{settings.train} + {held_out} images for training and validation and "
            f"{settings.test} for the test are asked for; there are {rows} and "
            f"{len(found.test_images)}"
        )
    parts = (
        (found.train_images[: settings.train], found.train_labels[: settings.train]),
        (found.train_images[rows - held_out :], found.train_labels[rows - held_out :]),
        (found.test_images[: settings.test], found.test_labels[: settings.test]),
    )
    scale = np.float32(1.0 / DIVISOR)
    arrays: list[Any] = []
    for x, labels in parts:
        arrays += [x * scale, labels.astype(np.intp)]
    return Images._make(arrays)


def _go_on(
    run: Run, path: Path, candidate: Candidate, settings: Settings, images: Images, epochs: int,
    bar: Any,
) -> Run:  # fmt: skip
    """Train up to `epochs` epochs in all, and store the state after each."""
    y = np.eye(10, dtype=np.float32)[images.labels]
    while len(run.errors) < epochs:
        train_epoch(run, candidate, settings, images.x, y)
        theta = run.training.theta
        given = classes_of_mean(candidate, settings, theta, images.x_validation)
        run.errors.append(float(np.mean(given != images.labels_validation)))
        save(path, run, candidate, settings)
        bar.set_postfix_str(
            f"{candidate.method}: {100 * run.errors[-1]:.2f} % of validation", refresh=False
        )
        bar.update(cost(candidate))
    return run


def train_all(
    out: Path,
    images: Images,
    settings: Settings,
    candidates: Sequence[Candidate],
    progress: bool | None = None,
) -> tuple[list[list[float]], dict[str, tuple[Candidate, Run]]]:
    """Search, choose and train on; go on from the files in `out`.

    Returns
    -------
    searched : list of list of float
        Validation error (a share) after every epoch of the search, for each candidate.
    chosen : dict
        The best candidate of each method, trained to the end.
    """
    total = dict(zip(METHODS, settings.epochs, strict=True))
    paths = [out / f"state-{number}.npz" for number in range(len(candidates))]
    runs = [load(path, c, settings) for path, c in zip(paths, candidates, strict=True)]
    work = sum(map(cost, candidates)) * settings.search + sum(
        COST[name] * (epochs - settings.search) for name, epochs in total.items()
    )
    done = sum(cost(c) * len(run.errors) for c, run in zip(candidates, runs, strict=True))
    searched, chosen = [], {}
    hidden = None if progress is None else not progress
    layout = "{percentage:3.0f}% |{bar}| {elapsed}, {remaining} left{postfix}"
    with tqdm(total=work, initial=done, bar_format=layout, disable=hidden, leave=False) as bar:
        for run, path, c in zip(runs, paths, candidates, strict=True):
            _go_on(run, path, c, settings, images, settings.search, bar)
            searched.append(run.errors[: settings.search])
        for method in METHODS:
            own = [number for number, c in enumerate(candidates) if c.method == method]
            best = min(own, key=lambda number: searched[number][-1])
            run, c = runs[best], candidates[best]
            bar.total += (cost(c) - COST[method]) * (total[method] - settings.search)
            _go_on(run, paths[best], c, settings, images, total[method], bar)
            chosen[method] = (c, run)
    return searched, chosen


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    settings: Settings | None = None,
    candidates: Sequence[Candidate] = CANDIDATES,
    found: MNIST | None = None,
    progress: bool | None = None,
) -> str:
    """Train, choose, test and prune; write ``mnist.png`` and ``numbers.json``; return the tables.

    The folder holds the state after every epoch: the same call goes on from there, with the same
    numbers bit for bit (on the same machine, with as many BLAS threads), and returns at once when
    all is done. `settings` have a seed of their own; `candidates`, at least one for each method;
    `found`, images other than those of the data folder.

    Raises
    ------
    ValueError
        If `out` holds a run of another seed or other settings, or a damaged file.
    """
    settings = settings or Settings(seed)
    _check(settings, candidates)
    record = {
        "format": FORMAT,
        "settings": settings.record,
        "candidates": [c.name for c in candidates],
    }
    out.mkdir(parents=True, exist_ok=True)
    _same(out, record)
    done = _read(out / FINISHED)
    if done is not None:
        return tables.lay_out(done)
    images = prepare(data.load() if found is None else found, settings)
    write_json(out / SETTINGS, record)
    searched, chosen = train_all(out, images, settings, candidates, progress)
    numbers, weights = measure(images, settings, chosen)
    search = [
        {"method": c.method, "name": c.name, "errors": errors}
        for c, errors in zip(candidates, searched, strict=True)
    ]
    numbers = {**record, "search": search, **numbers}
    plots.draw(numbers, weights).savefig(out / "mnist.png", dpi=100)
    numbers["seconds"] = sum(
        load(path, c, settings).seconds
        for c, path in ((c, out / f"state-{i}.npz") for i, c in enumerate(candidates))
    )
    write_json(out / FINISHED, numbers)
    return tables.lay_out(numbers)


def _check(settings: Settings, candidates: Sequence[Candidate]) -> None:
    absent = [name for name in METHODS if name not in {c.method for c in candidates}]
    if absent:
        raise ValueError(f"candidates must hold one or more of each method; {absent} has none")
    if not 1 <= settings.search <= min(settings.epochs):
        raise ValueError(
            f"search must be at least 1 epoch and at most those of every method, "
            f"{settings.epochs}; got {settings.search}"
        )


def _same(out: Path, record: dict[str, Any]) -> None:
    """Raise if `out` holds the run of another seed or of other settings."""
    there = _read(out / SETTINGS)
    if there is None or there == record:
        return
    old, new = (
        one.get("settings", {}) | {name: one.get(name) for name in ("candidates", "format")}
        for one in (there, record)
    )
    names = [name for name in new if old.get(name) != new[name]]
    said = "; ".join(
        name if name == "candidates" else f"{name} {old.get(name)} there, {new[name]} here"
        for name in names
    )
    raise ValueError(
        f"{out} holds the run of other settings ({said}). Make the same call to go on with it, "
        "or name another folder"
    )


def _read(path: Path) -> dict[str, Any] | None:
    """Return the table in a JSON file, or None if there is no file."""
    if not path.exists():
        return None
    try:
        check_regular(path)
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it holds no table of names")
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Delete it, or name another folder"
        ) from None
    return found
