"""``bbb-numpy grade``: answers to the exercises, proved or diagnosed."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from bbb_numpy.cli.options import Commands, above_zero, add_command, at_least_one
from bbb_numpy.cli.outputs import check_folder

from .exports import FORMATS, export
from .gradebook import gradebook
from .keys import chapters, find, name_of
from .processes import printable
from .templates import copy_templates, solution_paths
from .variants import check_seed, chosen, index_of, n_variants
from .workload import effort

__all__ = ["add_parsers", "grade"]

NO_VARIANT = "none of these exercises has a variant"


def grade(args: argparse.Namespace) -> int:
    """Grade answers to the exercises: prove them, or say what is wrong."""
    from .sandbox import grade_files

    if args.variant:
        check_seed(args.variant)
    if args.list:
        return _list(args.variant)
    if args.copy:
        return _copy(Path(args.copy), args.answers, args.variant)
    if not args.answers and not args.export:
        raise ValueError(
            "name a file or a folder of answers; "
            "`bbb-numpy grade --copy exercises` writes templates of all into the folder exercises"
        )
    paths = _answers(_files(args.answers)) or solution_paths()
    if args.export:
        folder = check_folder(f"{args.export}_export" if args.out is None else args.out)
        written = export(args.export, paths, folder, args.variant)
        if not written:
            raise ValueError(NO_VARIANT)
        for path in written:
            print(f"wrote {path}")
        return 0
    verdicts = []
    for path, verdict in zip(
        paths,
        grade_files(paths, args.seconds, args.megabytes, args.variant),
        strict=True,
    ):
        verdicts.append(verdict)
        if not args.json:
            text = str(verdict)
            if not verdict.passed:
                text = f"\n{verdict}\n  in {printable(str(path))}\n"
            print(text, flush=True)
    passed = sum(graded.passed for graded in verdicts)
    if args.json:
        print(json.dumps(gradebook(paths, verdicts, args.variant), indent=1))
    else:
        print(f"{passed} of {len(verdicts)} pass")
    return 0 if passed == len(verdicts) else 1


def _list(seed: str) -> int:
    for chapter, exercises in chapters().items():
        for number, exercise in enumerate(exercises, 1):
            minutes, level, *_ = effort(exercise.name)
            path = f"{chapter}/{number}_{exercise.name}"
            note = " ".join(exercise.tags)
            if seed:
                note = _variant(exercise.name, seed)
            print(f"{path:<60} {minutes:>3} min  {level:<8}{note}")
    return 0


def _variant(name: str, seed: str) -> str:
    """Return which of its variants an exercise is, and what it asks."""
    if not n_variants(name):
        return "no variant"
    asks = " ".join(variation.asks for variation in chosen(name, seed))
    return f"variant {index_of(name, seed) + 1} of {n_variants(name)}: {asks}"


def _copy(folder: Path, names: list[str], seed: str) -> int:
    """Write templates, and print how many are new, how many existed, and what to do next."""
    written = copy_templates(folder, names, seed)
    for chapter in dict.fromkeys(path.parent for path in written):
        new = [is_new for path, is_new in written.items() if path.parent == chapter]
        note = ""
        if False in new:
            note = f"; existing files kept: {new.count(False)}"
        print(f"{chapter}: templates written: {new.count(True)}{note}")
    without = [
        name_of(path)
        for path in solution_paths(names)
        if seed and not n_variants(name_of(path))
    ]
    if without:
        print(f"left out, since they have no variant: {', '.join(without)}")
    if not written:
        raise ValueError(NO_VARIANT)
    if len(names) == 1:
        folder = next(iter(written)).parent
    option = f" --variant {seed}" if seed else ""
    command = f"bbb-numpy grade{option} {shlex.quote(str(folder))}"
    print(f"Fill in the hole of each, then: {command}")
    return 0


def _files(names: list[str]) -> list[Path]:
    """Return the answers that files and folders hold; the solutions only where they are named."""
    paths: list[Path] = []
    for text in names:
        path = Path(text)
        if path.is_dir():
            numbered = sorted(
                file for file in path.rglob("*.py") if file.name[0].isdigit()
            )
            inside = [
                file
                for file in numbered
                if "solutions" not in file.relative_to(path).parts
            ]
            if not inside:
                raise ValueError(
                    f"there is no answer in {path}: none of its files is numbered"
                )
            paths += inside
        elif path.is_file():
            paths.append(path)
        else:
            raise ValueError(f"there is no file or folder {path}")
    return paths


def _answers(paths: list[Path]) -> list[Path]:
    """Return the files that are named after exercises, and say which are not.

    Raises
    ------
    ValueError
        If there are files, and none of them is.
    """
    answers = []
    messages = []
    for path in paths:
        try:
            find(name_of(path))
        except ValueError as error:
            messages.append(f"{printable(str(path))}: {error}")
        else:
            answers.append(path)
    if messages and not answers:
        raise ValueError(messages[0])
    for message in messages:
        print(f"left out: {message}", file=sys.stderr)
    return answers


def add_parsers(commands: Commands) -> None:
    """Add the subcommand grade."""
    parser = add_command(commands, "grade", grade)
    parser.description = (
        "Grade answers to the exercises: each is proved in exact arithmetic, or told by term and "
        "block what is wrong; where nobody knows the mistake, it gets the smallest case that "
        "fails. An answer is code, and grading runs it: in a process of its own with limits of "
        "time and memory, which are against accidents and no jail."
    )
    text = (
        "files, or folders of them; with --copy chapters such as 02 and exercises such as 02/5, "
        "by default all"
    )
    parser.add_argument("answers", nargs="*", metavar="FILE", help=text)
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--list", action="store_true", help="show all exercises")
    text = (
        "instead of grading, write templates of the exercises; existing files are kept"
    )
    modes.add_argument("--copy", metavar="FOLDER", help=text)
    modes.add_argument(
        "--json", action="store_true", help="print verdicts for programs"
    )
    text = (
        "seed of other exercises of the same kind: with --copy, --export and --list those are "
        "written and shown; in grading, an answer to another variant does not pass"
    )
    parser.add_argument("--variant", metavar="SEED", default="", help=text)
    text = "time limit for each answer"
    parser.add_argument("--seconds", type=above_zero, default=20.0, help=text)
    text = "memory limit for each answer"
    parser.add_argument("--megabytes", type=at_least_one, default=1024, help=text)
    text = (
        "instead of grading, write tests for Otter-Grader, or source notebooks for nbgrader, "
        "of all exercises where no file is named"
    )
    modes.add_argument("--export", choices=FORMATS, help=text)
    parser.add_argument(
        "--out", help="folder of the export (otter_export, nbgrader_export)"
    )
