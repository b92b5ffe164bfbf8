"""The file of a checkpoint: written whole or not at all, read without trust (for `checkpoint`)."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .encoding import CheckpointError, same_names
from .files import write_arrays

__all__ = ["FORMAT", "VERSION", "read", "write"]

Array = NDArray[Any]
FORMAT = "bbb_numpy.learner"
VERSION = 3
FORMAT_1 = "bbb_numpy.BayesianMLPRegressor"  # of version 1
HEADER = {"format", "version", "learner", "written_by", "parameters", "model", "fitted", "draws"}


def write(path: Path, arrays: dict[str, Array]) -> None:
    """Write `arrays`, replacing an older file only when all is written.

    Raises
    ------
    OSError
        If the file cannot be written; an older file is untouched.
    """
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no regular file; name a file for the model")
    write_arrays(path, arrays)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return header and arrays of a file, or say why it is no checkpoint.

    Raises
    ------
    CheckpointError
        For anything but a file that `write` has written, of version 1 to 3.
    OSError
        If there is no such file or it cannot be read.
    """
    with open(path, "rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise CheckpointError("is a single .npy array, not a checkpoint written by save")
        if not zipfile.is_zipfile(file):
            raise CheckpointError("cannot be read; it is no .npz file, or was cut short")
        file.seek(0)
        try:
            content = np.load(file, allow_pickle=False)
            arrays, names = dict(content), content.files
        except Exception as error:  # damage can upset every layer from zip to number format
            why = "it holds objects, not plain arrays" if "pickle" in str(error) else error
            raise CheckpointError(
                f"cannot be read; it is no checkpoint, or damaged ({why})"
            ) from None
    if len(set(names)) != len(names):
        raise CheckpointError("has two entries of the same name")
    strange = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]
    if strange or "header" not in arrays:
        raise CheckpointError("has no header: not a checkpoint written by save")
    try:
        header = json.loads(arrays.pop("header").tobytes().decode())
    except ValueError as error:
        raise CheckpointError(f"header is not JSON: {error}") from None
    if not isinstance(header, dict) or header.get("format") not in (FORMAT, FORMAT_1):
        raise CheckpointError(f"header: format must be {FORMAT!r}: not a checkpoint of a learner")
    version = header.get("version")
    wanted = (1,) if header["format"] == FORMAT_1 else (2, VERSION)
    if version not in wanted or isinstance(version, bool):
        raise CheckpointError(
            f"header: version {version!r} is not supported, this package reads "
            f"versions up to {VERSION}; the file was written by bbb_numpy "
            f"{header.get('written_by')!r}"
        )
    if version == 1:
        same_names("header", header, HEADER - {"learner", "draws"})
        header, version = _upgraded(header), 2
    if version == 2:
        same_names("header", header, HEADER - {"draws"})
        header = _with_inference(header)
    same_names("header", header, HEADER)
    return header, arrays


def _upgraded(header: dict[str, Any]) -> dict[str, Any]:
    """Turn a header of version 1 into one of version 2, with what it took for granted."""
    header = _with_learn(header)
    given, parts = header["parameters"], header["model"]
    same_names("model", parts, {"network", "prior", "likelihood", "posterior"})
    if not isinstance(given, dict):
        raise CheckpointError(f"parameters must be a table of names; got {given!r}")
    # Defaults may have changed since: those of the time are the fitted model's
    given |= {name: part for name, part in parts.items() if name in given and given[name] is None}
    if given.get("optimizer", "") is None:
        cosine = {"class": "Cosine", "arguments": {"final": 0.0}}
        numbers = {"learning_rate": 1e-2, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
        given["optimizer"] = {"class": "Adam", "arguments": numbers | {"schedule": cosine}}
    given |= dict.fromkeys(("objective", "kl_weights"))
    given |= {"estimator": "reparameterised", "warm_up": "none"}
    parts |= {"estimator": "Reparameterised", "antithetic": False}
    parts["objective"] = {"class": "FreeEnergy", "arguments": {"beta": 1.0}}
    return header | {"format": FORMAT, "version": 2, "learner": "BayesianMLPRegressor"}


def _with_inference(header: dict[str, Any]) -> dict[str, Any]:
    """Turn a header of version 2 into one of version 3: nothing was sampled then."""
    given = header["parameters"]
    if not isinstance(given, dict) or "inference" in given:
        raise CheckpointError(f"parameters must be a table of those of version 2; got {given!r}")
    return header | {"version": VERSION, "draws": None, "parameters": given | {"inference": None}}


def _with_learn(value: Any) -> Any:
    """Add to every Gaussian prior that it is not learned."""
    if isinstance(value, list):
        return [_with_learn(item) for item in value]
    if not isinstance(value, dict):
        return value
    value = {key: _with_learn(item) for key, item in value.items()}
    if value.get("class") == "GaussianPrior" and isinstance(value.get("arguments"), dict):
        value["arguments"] = {"learn": False} | value["arguments"]
    return value
