"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
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
    from foci.files.bounded import yaml_value

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
