"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from foci.errors import FociError

SplitSeed = Annotated[
    int | None,
    typer.Option(help="Seed of the patient split, if no table gives one; default is the model's."),
]
AcceptChanged = Annotated[
    bool,
    typer.Option(
        "--accept-changed", help="Go on although files of an audit were changed; the page says so."
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]


class TargetName(StrEnum):
    """Class that the kept tiles should support."""

    label = "label"
    prediction = "prediction"


class Choice(StrEnum):
    """Validation criterion that chooses the best epoch."""

    aukc = "aukc"
    loss = "loss"
    decisive = "decisive"


def settings(pairs: list[str], option: str) -> dict[str, Any]:
    """Parse ``key=value`` pairs; values are YAML, so ``true``, ``3`` and ``null`` are not text.

    >>> settings(["d=128", "head_hidden=null", "activation=gelu"], "--set")
    {'d': 128, 'head_hidden': None, 'activation': 'gelu'}
    """
    from foci.files.bounds import yaml_value

    result = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise FociError(f"{option} {pair}", "is not of the form key=value", "write key=value")
        try:
            result[key] = yaml_value(value)
        except ValueError as error:
            why = f"has a value that cannot be read ({str(error).splitlines()[0]})"
            raise FociError(f"{option} {pair}", why, "close brackets and quotes") from error
    return result


def confidence(text: str | None) -> Any:
    """Parse ``--kappa``: a number, or ``relative``; None if the option was not given.

    >>> confidence("0.8"), confidence("relative"), confidence(None)
    (0.8, 'relative', None)
    """
    if text in (None, "relative"):
        return text
    try:
        return float(str(text))
    except ValueError:
        fix = "give a confidence between 0 and 1, or relative"
        raise FociError("--kappa", f"cannot be {text!r}", fix) from None


def names(text: str | None) -> tuple[str, ...] | None:
    """Split a comma-separated list of names; None if the option was not given.

    >>> names("B-type, A-type")
    ('B-type', 'A-type')
    """
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def choose(name: str) -> str:
    """Torch device by name; ``"auto"`` is the first GPU if there is one, else the CPU."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise FociError(f"--device {name}", f"cannot be used ({reason})", "use auto") from None
    return name


# The command-line options that say which slides a command reads.


PANEL = "Cohort"

Given = dict[str, Any]
"""Values of the cohort options that were given, by name: what
:class:`foci.bags.cohort.CohortOptions` is built from."""

_FEATURES = "Folder of feature files (CLAM, TRIDENT, STAMP, ...)."
_OPTIONS: dict[str, tuple[type, dict[str, Any]]] = {
    "features": (Path, {"help": _FEATURES}),
    "labels": (Path, {"help": "Label table: FOCI, CLAM, Patho-Bench, STAMP or torchmil."}),
    "splits": (
        Path,
        {"help": "CLAM's splits_k.csv, a folder of them, or a table of slide_id and split."},
    ),
    "slide_table": (Path, {"help": "STAMP's slide table."}),
    "label_column": (str, {"help": "Column with the label, if the format leaves it open."}),
    "fold": (int, {"help": "Fold of a folder of splits, or of a Patho-Bench table.", "min": 0}),
    "only_classes": (str, {"help": "Keep only these classes, separated by commas."}),
    "exclude_class": (str, {"help": "Leave out these classes, separated by commas."}),
    "allow_patient_overlap": (
        bool,
        {"help": "Go on, with a warning, where a patient is in two splits."},
    ),
    "classes": (str, {"help": "Class names in the model's order, separated by commas."}),
    "layout": (str, {"help": "Feature layout; detected by default."}),
    "mpp": (
        float,
        {"help": "Micrometres per level-0 pixel (STAMP, slideflow).", "min": 0.01},
    ),
    "n_cap": (
        int,
        {"help": "Maximum number of tiles per bag; default 1024, or the model's."},
    ),
}
_LISTS = {"classes", "only_classes", "exclude_class"}
"""Options that hold several names, separated by commas."""


def cohort_options(
    *, required: Collection[str] = (), without: Collection[str] = (), argument: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the cohort options to a command, which gets them as one argument, ``cohort``.

    Typer reads options off a function's signature, so the decorated command has a signature in
    which the parameter ``cohort`` is replaced by one parameter per option.

    Args:
        required: Options that must be given.
        without: Options that mean nothing to this command.
        argument: Whether the feature folder is an argument instead of an option.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        added = [
            _parameter(name, name in required, argument and name == "features")
            for name in _OPTIONS
            if name not in without
        ]

        @wraps(command)
        def run(**values: Any) -> None:
            given = {option.name: values.pop(option.name) for option in added}
            for option in _LISTS.intersection(given):
                given[option] = names(given[option])
            cohort = {name: value for name, value in given.items() if value is not None}
            command(**values, cohort=cohort)

        rest = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in own.items()
            if name != "cohort"
        ]
        parameters = [*rest, *added]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(name: str, required: bool, argument: bool) -> inspect.Parameter:
    kind, settings = _OPTIONS[name]
    flag = [f"--{name.replace('_', '-')}"] if kind is bool else []  # without its --no- twin
    info = (
        typer.Argument(**settings)
        if argument
        else typer.Option(*flag, **settings, rich_help_panel=PANEL)
    )
    must = required or argument
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if must else None,
        annotation=Annotated[kind if must else kind | None, info],
    )
