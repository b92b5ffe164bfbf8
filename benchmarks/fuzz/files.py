"""Damaged and crafted files: models for `load`, tables for the command line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .children import Overtime, grown
from .verdicts import names_

__all__ = ["model", "table"]

Rng = np.random.Generator
REFUSED_GROWTH = 64 << 20  # bytes: no refused model may cost more
LONGEST_LINE = 2000  # characters of a message


@cache
def saved() -> list[bytes]:
    """Return the files of one learner of each kind."""
    known, found = names_(), []
    for kind in known["FITTED"]:
        known["save"](known["fitted"](kind), "whole.npz")
        found.append(Path("whole.npz").read_bytes())
    return found


def entries(data: bytes) -> dict[str, bytes]:
    """Return what an archive holds."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(parts: dict[str, bytes], **how: Any) -> bytes:
    """Return an archive of these entries."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", **how) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


def array(values: Any) -> bytes:
    """Return an array as the bytes of a .npy file."""
    out = io.BytesIO()
    np.save(out, values, allow_pickle=True)
    return out.getvalue()


def some(rng: Rng, parts: dict[str, bytes]) -> str:
    """Return the name of one entry."""
    return sorted(parts)[rng.integers(len(parts))]


def flipped(rng: Rng, data: bytes) -> bytes:
    """Flip some bits, or overwrite a stretch."""
    out = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 3, 30]))):
        out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    if rng.random() < 0.2:
        at = int(rng.integers(len(out)))
        out[at : at + 50] = rng.bytes(len(out[at : at + 50]))
    return bytes(out)


def cut(rng: Rng, data: bytes) -> bytes:
    """Leave bytes out: at an end, or inside."""
    low, high = sorted(rng.integers(len(data), size=2))
    return [data[:high], data[low:], data[:low] + data[high:], data + data][rng.integers(4)]


def other_entries(rng: Rng, data: bytes) -> bytes:
    """Take an entry away, add one, name one otherwise, exchange two, or write one twice."""
    parts = entries(data)
    first, second = some(rng, parts), some(rng, parts)
    match rng.integers(5):
        case 0:
            del parts[first]
        case 1:
            parts[rng.choice(["extra.npy", "../up.npy", "/etc/x.npy", "a" * 60_000, ".npy"])] = b"x"
        case 2:
            parts[first.upper()] = parts.pop(first)
        case 3:
            parts[first], parts[second] = parts[second], parts[first]
        case _:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a name that is there twice
                return archived_twice(parts, first)
    return archived(parts)


def archived_twice(parts: dict[str, bytes], name: str) -> bytes:
    """Return an archive with one entry twice."""
    out = io.BytesIO(archived(parts))
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr(name, parts[name])
    return out.getvalue()


def other_array(rng: Rng, data: bytes) -> bytes:
    """Put another array in the place of one."""
    parts = entries(data)
    name = some(rng, parts)
    values = np.load(io.BytesIO(parts[name]))
    new: Any = [
        lambda: values.astype(rng.choice(["f2", "f4", "f8", "i1", "c16", "U7", "O", "g", ">f8"])),
        lambda: values.ravel()[: values.size // 2],
        lambda: np.resize(values, (2, *values.shape)),
        lambda: np.where(rng.random(values.shape) < 0.5, np.nan, values.astype(float)),
        lambda: np.full(values.shape, rng.choice([np.inf, -1e308, 1e308, -1.0, 0.0])),
        lambda: np.array({"a": 1}, object),
        lambda: np.zeros(values.shape, "M8[s]"),
        lambda: np.zeros((0, *values.shape[1:]), values.dtype),
        lambda: np.zeros(1, "f8, i4"),
        lambda: np.asfortranarray(values),
    ][rng.integers(10)]
    with np.errstate(all="ignore"), warnings.catch_warnings(), contextlib.suppress(ValueError):
        warnings.simplefilter("ignore")
        parts[name] = array(new())
    return archived(parts)


def huge_shape(rng: Rng, data: bytes) -> bytes:
    """Let the header of an array claim more than there is."""
    parts = entries(data)
    shape = rng.choice(["(10**12,)", "(1000000000000,)", "(-1,)", "(4294967296, 4294967296)"])
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode() + b" " * 20
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
    parts[some(rng, parts)] = head + bytes(int(rng.choice([0, 8, 800])))
    return archived(parts)


def other_header(rng: Rng, data: bytes) -> bytes:
    """Write other JSON: nested, long, of other types, with other numbers, or none at all."""
    parts = entries(data)
    text = np.load(io.BytesIO(parts["header.npy"])).tobytes()
    tree = json.loads(text)
    whole: list[Callable[[], bytes]] = [
        lambda: b"[" * int(rng.choice([50, 101, 100_000, 5_000_000])),
        lambda: b'{"a":' * 100_000,
        lambda: b"[" + b"0," * 2_000_000 + b"0]",
        lambda: b'"' + b"\\u00e9" * 3_000_000 + b'"',
        lambda: b"9" * 10_000,
        lambda: b"",
        lambda: b"\xff\xfe\x00",
        lambda: text.replace(b"1", str(rng.choice(["NaN", "-1", "1e999", "true"])).encode(), 3),
    ]
    if rng.random() < 0.3:
        new = whole[rng.integers(len(whole))]()
    else:
        changed(rng, tree)
        new = json.dumps(tree).encode()
    parts["header.npy"] = array(np.frombuffer(new, np.uint8))
    return archived(parts)


def changed(rng: Rng, tree: Any) -> None:
    """Change one leaf or branch of a tree, in place."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[rng.integers(len(keys))]
        below = tree[key]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.1:
            break
        tree = below
    values = [None, True, -1, 0, 2**63, 10**12, 10**400, 0.5, 1e300, "", "x" * 10**6, [], {}]
    values += [[[]], {"float": "nan"}, {"name": "exec"}, {"Adam": {}}, {"array": "<f8"}]
    values += [{"list": [1]}, {"dict": {"a": 1}}, {"generator": {}}, {"objects": [1]}, below]
    if isinstance(tree, dict) and rng.random() < 0.2:
        tree["added" if rng.random() < 0.5 else f"{key}_"] = tree.pop(key)
    else:
        tree[key] = values[rng.integers(len(values))]


def zip_trick(rng: Rng, data: bytes) -> bytes:
    """Compress, encrypt in name, prepend or append, or lie about sizes in the directory."""
    parts = entries(data)
    match rng.integers(6):
        case 0:
            return archived(parts, compression=zipfile.ZIP_DEFLATED)
        case 1:
            parts[some(rng, parts)] = bytes(200 << 20)
            return archived(parts, compression=zipfile.ZIP_DEFLATED)
        case 2:
            return rng.bytes(100) + data
        case 3:
            return data + rng.bytes(100)
        case 4:
            return archived({f"{i}.npy": b"" for i in range(20_000)} | parts)
    out = bytearray(data)  # sizes, flags and offsets of the directory
    at = data.find(b"PK\x01\x02")
    for _ in range(3):
        place = at + int(rng.integers(8, 46))
        out[place : place + 4] = rng.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\1\0\0\0"])
    return bytes(out)


def no_archive(rng: Rng, data: bytes) -> bytes:
    """Return what is no archive at all."""
    return bytes(
        [b"", b"PK", b"PK\x05\x06" + bytes(18), array(np.zeros(3)), rng.bytes(1000), b"{}" * 99][
            rng.integers(6)
        ]
    )


DAMAGES = (
    *[flipped] * 4,
    *[cut] * 2,
    *[other_header] * 6,
    *[other_array] * 5,
    *[other_entries] * 3,
    *[huge_shape] * 2,
    *[zip_trick] * 2,
    no_archive,
)
ODD = ("pipe", "folder", "/dev/zero", "/dev/null", "link to itself", "link to nothing", "link")


def placed(rng: Rng, path: Path) -> tuple[str, bytes | None]:
    """Put a damaged file, or what is no file, at a path; return its kind, and its bytes."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    files = saved()
    data = files[rng.integers(len(files))]
    if rng.random() < 0.03:
        kind = ODD[rng.integers(len(ODD))]
        match kind:
            case "pipe":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "link to itself":
                path.symlink_to(path.name)
            case "link":
                Path("whole.npz").write_bytes(data)
                path.symlink_to("whole.npz")
            case _:
                path.symlink_to("nothing" if kind == "link to nothing" else kind)
        return kind, data if kind == "link" else None
    damage = DAMAGES[rng.integers(len(DAMAGES))]
    new = damage(rng, data)
    path.write_bytes(new)
    return damage.__name__, new


def model(seed: int, trial: int, loud: bool = False) -> dict[str, Any]:
    """Read one damaged model file: it is refused in words, or it is a model that predicts."""
    known, path = names_(), Path("model.npz")
    kind, _ = placed(np.random.default_rng([seed, trial]), path)
    what, said = "refused", ""
    with warnings.catch_warnings(), grown() as peak:
        warnings.simplefilter("ignore")
        try:
            learner = known["load"](path)
            what = "read"
        except (known["CheckpointError"], OSError) as error:
            said = str(error)
        except (Exception, Overtime) as error:
            what, said = f"{type(error).__name__} from load", str(error)[:300]
        growth = peak()
    if what == "refused" and (growth > REFUSED_GROWTH or not 0 < len(said) < LONGEST_LINE):
        what, said = "refused at a price", f"{growth >> 20} MB, {len(said)} characters"
    if what == "read":
        what, said = predicts(learner, known["X"])
    if loud:
        print(kind, what, said, f"{growth >> 20} MB", sep="\n")
    if what in ("refused", "read"):
        return {"what": f"{what}: {kind}" if what == "read" else what}
    return {"what": kind, "defect": what, "text": f"{kind}\n{said}"}


def predicts(learner: Any, rows: Any) -> tuple[str, str]:
    """Say what the first prediction of a model that was read comes to."""
    width = learner.n_features_in_
    try:
        with warnings.catch_warnings(), grown():
            warnings.simplefilter("ignore")  # names of features that rows do not have
            found = np.asarray(learner.predict(np.resize(rows, (4, width))))
    except ValueError as error:
        known = "overflow" in str(error) or "far" in str(error)
        return ("read", "") if known else ("ValueError from predict", str(error)[:300])
    except (Exception, Overtime) as error:
        return f"{type(error).__name__} from predict", str(error)[:300]
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        return "nan from predict", ""
    return "read", ""


CELLS = """
nan|inf|-inf||1_0|1,5|0x10|1e999|red|"a,b"|"|'|;|1;2|\t| 7 |true|2020-01-01|é|\\|#|=1+1|NA|<NA>|-0
"""


def damaged_table(rng: Rng) -> bytes:
    """Return a table of numbers with damages that real files have."""
    rows = [["a", "b", "target"]]
    rows += [[f"{value:.3f}" for value in row] for row in rng.standard_normal((12, 3))]
    hostile = [*CELLS.strip("\n").split("|"), "9" * 400, "x" * 5000, "\0", "1\n2", "\ufeff"]
    for _ in range(int(rng.choice([0, 1, 1, 2, 5]))):
        row = rows[rng.integers(len(rows))]
        match rng.integers(4):
            case 0:
                row.pop()
            case 1:
                row.append("1")
            case _:
                row[rng.integers(len(row))] = hostile[rng.integers(len(hostile))]
        rows = [row for row in rows if row] or [[""]]
    separator = str(rng.choice([",", ",", ",", ";", "\t", "|", " "]))
    text = str(rng.choice(["\n", "\n", "\r\n", "\r"])).join(map(separator.join, rows))
    data = text.encode(
        str(rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"])), "replace"
    )
    damage = [lambda: data, lambda: flipped(rng, data), lambda: cut(rng, data), lambda: b""]
    return damage[rng.choice([0, 0, 0, 1, 2, 3], p=[0.3, 0.2, 0.1, 0.2, 0.15, 0.05])]()


def table(seed: int, trial: int, loud: bool = False) -> dict[str, Any]:
    """Fit or predict from one damaged table: status 0, or 2 and a line that says why."""
    from bbb_numpy.cli.main import main

    rng = np.random.default_rng([seed, trial])
    Path("data.csv").write_bytes(damaged_table(rng))
    Path("whole.npz").write_bytes(named())
    fits = rng.random() < 0.6
    quick = ["--epochs", "2", "--hidden", "3"]
    argv = ["fit", "data.csv", "--target", "target", "--model", "new.npz", *quick]
    written = Path("new.npz" if fits else "new.csv")
    written.unlink(missing_ok=True)
    argv = argv if fits else ["predict", "whole.npz", "data.csv", "--output", str(written)]
    out, err, leaked = io.StringIO(), io.StringIO(), ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), grown():
        try:
            status = main(argv)
        except SystemExit as end:
            status = int(end.code or 0)
        except (Exception, Overtime) as error:
            status, leaked = 1, f"{type(error).__name__}: {error}"[:300]
    said = err.getvalue()
    faults = {
        "an exception": bool(leaked) or "Traceback" in said,
        "a strange status": status not in (0, 2),
        "no reason": status == 2 and "bbb-numpy" not in said,
        "a long line": max(map(len, said.splitlines()), default=0) > LONGEST_LINE,
        "a file in spite of failure": status != 0 and written.exists(),
        "no file": status == 0 and not written.exists(),
    }
    found = [fault for fault, is_so in faults.items() if is_so]
    if loud:
        print(Path("data.csv").read_bytes(), argv, status, said, leaked, found, sep="\n")
    if found:
        text = f"{' '.join(argv)}\n{leaked or said[-500:]}"
        return {"what": argv[0], "defect": found[0], "text": text}
    return {"what": "done" if status == 0 else "refused"}


@cache
def named() -> bytes:
    """Return the file of a model of columns a and b."""
    known = names_()
    known["save"](known["fitted"]("named"), "named.npz")
    return Path("named.npz").read_bytes()
