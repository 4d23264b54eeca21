"""Options: those that are settings, declared once and handed on by name; and shared types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from foci.errors import FociError

Given = dict[str, Any]
"""Settings that were given on the command line, by name."""

AuditFolder = Annotated[Path, typer.Argument(help="Folder of foci audit.")]
AcceptChanged = Annotated[
    bool,
    typer.Option(
        "--accept-changed",
        help="Continue although files of an audit were changed; the page says so.",
    ),
]
Config = Annotated[Path | None, typer.Option(help="YAML file with any of these settings.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]
SlideImages = Annotated[
    Path | None,
    typer.Option(help="Folder of whole-slide images; default is what the audit was shown."),
]
SlideMpp = Annotated[
    float | None,
    typer.Option(min=0.05, help="Micrometres per level-0 pixel of slides that do not say."),
]


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


def confidence(text: str) -> float | Literal["relative"]:
    """Parse ``--kappa``: a number, or ``relative``.

    >>> confidence("0.8"), confidence("relative")
    (0.8, 'relative')
    """
    if text == "relative":
        return "relative"
    try:
        return float(text)
    except ValueError:
        fix = "give a confidence between 0 and 1, or relative"
        raise FociError("--kappa", f"cannot be {text!r}", fix) from None


def names(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of names.

    >>> names("B-type, A-type")
    ('B-type', 'A-type')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def choose_device(name: str) -> str:
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


@dataclass(frozen=True)
class Setting:
    """A setting that can be given as an option of its name.

    Attributes:
        kind: Type of the option; a bool is a flag without its ``--no-`` twin.
        help: What ``--help`` says of it.
        convert: Makes the value of what was typed.
        min: Smallest number.
        argument: Whether it is an argument instead of an option.
        required: Whether it must be given.
    """

    kind: Any
    help: str
    convert: Callable[[str], Any] | None = None
    min: float | None = None
    argument: bool = False
    required: bool = False

    def parameter(self, name: str) -> inspect.Parameter:
        """The parameter of a command that typer makes the option of."""
        flag = [f"--{name.replace('_', '-')}"] if self.kind is bool else []
        make = typer.Argument if self.argument else typer.Option
        return inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if self.required else None,
            annotation=Annotated[
                self.kind if self.required else self.kind | None,
                make(*flag, help=self.help, min=self.min),
            ],
        )


COHORT = {
    "features": Setting(Path, "Folder of feature files (CLAM, TRIDENT, STAMP, ...)."),
    "labels": Setting(Path, "Label table: FOCI, CLAM, Patho-Bench, STAMP or torchmil."),
    "splits": Setting(
        Path, "CLAM's splits_k.csv, a folder of them, or a table of slide_id and split."
    ),
    "slide_table": Setting(Path, "STAMP's slide table."),
    "label_column": Setting(str, "Column with the label, if the format leaves it open."),
    "fold": Setting(int, "Fold of a folder of splits, or of a Patho-Bench table.", min=0),
    "only_classes": Setting(str, "Keep only these classes, separated by commas.", names),
    "exclude_class": Setting(str, "Leave out these classes, separated by commas.", names),
    "allow_patient_overlap": Setting(
        bool, "Continue, with a warning, where a patient is in two splits."
    ),
    "classes": Setting(str, "Class names in the model's order, separated by commas.", names),
    "layout": Setting(str, "Feature layout; detected by default."),
    "mpp": Setting(float, "Micrometres per level-0 pixel (STAMP, slideflow).", min=0.01),
    "n_cap": Setting(int, "Maximum number of tiles per bag; default 1024, or the model's."),
}
"""Which slides a command reads: the fields of :class:`foci.bags.cohort.CohortOptions`."""

SPLIT_SEED = Setting(
    int, "Seed of the patient split, if no table gives one; default is the model's."
)


def with_settings(
    *, without: Collection[str] = (), **own: Setting
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add options to a command, which gets those that were given as one argument, ``given``.

    Typer reads options off a function's signature, so the decorated command has a signature in
    which the parameter ``given`` is replaced by one parameter per setting.

    Args:
        without: Settings of the cohort that mean nothing to this command.
        **own: Settings beside those of the cohort, or in their place.
    """
    known = {name: one for name, one in {**COHORT, **own}.items() if name not in without}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**values: Any) -> None:
            given = {name: values.pop(name) for name in known}
            given = {name: value for name, value in given.items() if value is not None}
            for name, value in given.items():
                convert = known[name].convert
                given[name] = value if convert is None else convert(value)
            command(given=given, **values)

        rest = inspect.signature(command, eval_str=True).parameters.values()
        added = [one.parameter(name) for name, one in known.items()]
        return with_parameters(run, [*(one for one in rest if one.name != "given"), *added])

    return decorate


def with_parameters(
    run: Callable[..., None], parameters: Collection[inspect.Parameter]
) -> Callable[..., None]:
    """The same function, with a signature that typer reads these parameters from."""
    by_name = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    run.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
