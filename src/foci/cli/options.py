"""Options of the commands: settings, declared once and handed on by name; shared types; help.

The help groups options by subject, and shows flags without a type.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

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
ModelArg = Annotated[
    list[str],
    typer.Option(help="Argument of the factory, or option of the checkpoint: --model-arg heads=4."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, ...")]
SlideImages = Annotated[
    Path | None,
    typer.Option(help="Folder of whole-slide images; default is what the audit was shown."),
]
SlideMpp = Annotated[
    float | None,
    typer.Option(min=0.05, help="Micrometres per level-0 pixel of slides that do not say."),
]

TruthSource = Annotated[
    Path | None,
    typer.Option(
        help="A pathologist's truth: folder of QuPath GeoJSON, table of marked tiles, or the "
        "labels of foci view.",
    ),
]
TruthClass = Annotated[
    str | None,
    typer.Option(help="Class of the outlines, or label of the tiles, that is true."),
]
TruthShare = Annotated[
    float, typer.Option(help="Share of a tile's area inside from which it is true.")
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


def model_options(pairs: list[str]) -> dict[str, Any]:
    """``--model-arg`` as settings of the configuration.

    >>> model_options(["heads=4"])
    {'model_options.heads': 4}
    """
    return {f"model_options.{name}": one for name, one in settings(pairs, "--model-arg").items()}


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
    "time": Setting(str, "Column with the time to event or last visit."),
    "event": Setting(str, "Column that is 1 where the event was seen, 0 where censored."),
    "value": Setting(str, "Column with the number that a regression predicts."),
    "label_columns": Setting(str, "Columns of 0 and 1, one per label, with commas.", names),
    "bag": Setting(
        Literal["slide", "patient"], "What a bag is: a slide (default), or all of a patient's."
    ),
    "n_cap": Setting(
        int, "Maximum number of tiles per bag; default all, or as the model was trained."
    ),
    "no_cache": Setting(bool, "Keep no copies of the tiles that --n-cap leaves of large files."),
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


# Help

Panels = Mapping[str, Sequence[str]]
"""Names of parameters by the title of their panel."""

_TABLES = (
    "splits", "slide_table", "label_column", "fold", "only_classes", "exclude_class",
    "allow_patient_overlap", "classes", "time", "event", "value", "label_columns", "bag", "layout",
    "mpp", "n_cap", "no_cache",
)  # fmt: skip

PANELS: Mapping[str, Panels] = {
    "audit": {
        "Options": (
            "model", "features", "labels", "out", "slides", "truth", "map", "rankings", "kappa",
            "profile", "config", "change", "workers", "force",
        ),
        "More on clusters": ("address", "slurm", "slurm_option"),
        "More on the model": ("expect", "model_arg", "device"),
        "More on the cohort": (*_TABLES, "split", "split_seed"),
        "More on the selector": ("fit", "recipe", "fit_target", "choose_by", "seeds"),
        "More on what is measured": (
            "output", "cut", "tau", "target_class", "dense", "k_max", "target", "random_orders",
            "null_maps", "truth_class", "truth_share", "yes",
        ),
    },
    "train": {
        "Options": (
            "features", "labels", "out", "output", "preset", "width", "epochs", "seed", "device",
            "config",
        ),
        "More on the cohort": tuple(name for name in _TABLES if name != "classes"),
        "More on training": (
            "bins", "objective", "lr", "weight_decay", "schedule", "batch_size", "balanced",
        ),
    },
    "fit": {
        "Options": ("features", "labels", "out", "recipe", "change", "seed", "device"),
        "More on the model": ("expect", "model_arg"),
        "More on the cohort": (*_TABLES, "split_seed"),
        "More on fitting": ("target", "choose_by", "memory_gb"),
    },
    "encode": {
        "Encoder": ("encoder", "weights", "batch", "device"),
        "Tiles": ("mpp", "tile", "min_tissue", "slide_mpp"),
        "Run and output": ("out", "force"),
    },
    "export": {
        "Which slides": ("slide", "slide_list", "most_telling"),
        "Which tiles": ("rankings", "k", "truth", "truth_class", "truth_share"),
        "Images": ("slides", "slide_mpp"),
        "Output": ("to", "out"),
    },
    "doctor": {
        "Check": ("sample", "slides", "plugins", "as_json"),
        "Cohort": (
            "labels", *(name for name in _TABLES if name not in ("classes", "n_cap")),
        ),
    },
    "view": {
        "Slides": ("slides", "slide_mpp", "marks", "accept_changed"),
        "Server": ("host", "port", "browser"),
    },
    "report": {
        "What is shown": ("kappa", "k_max", "view", "truth", "truth_class", "truth_share"),
        "Output": ("out", "accept_changed"),
    },
    "demo": {
        "Slides": ("number", "classes", "output", "seed", "slides"),
        "Run": ("cohort_only", "study", "workers"),
    },
}  # fmt: skip
"""By command; one that is not named has a single panel. Panels named "More on ..." are folded:
``--help`` lists the names of their options, ``--help-all`` shows them."""

_ALL = "foci.help_all"


def _show_all(ctx: typer.Context, asked: bool) -> None:
    if asked:
        ctx.meta[_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", is_eager=True, callback=_show_all, help="Show every option and exit.",
        rich_help_panel="Options",
    ),
]  # fmt: skip


def _grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The same command, whose options stand under the titles of :data:`PANELS` in its help."""
    own = dict(inspect.signature(command, eval_str=True).parameters)
    parameters, panels = [], PANELS.get(command.__name__, {})
    for title, names in panels.items():
        for name in names:
            parameter = own.pop(name)
            kind, option = get_args(parameter.annotation)
            option = copy.copy(option)  # commands share some
            option.rich_help_panel = title
            parameters.append(parameter.replace(annotation=Annotated[kind, option]))
    parameters += own.values()
    if any(map(_folded, panels)):
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter("help_all", kind, default=False, annotation=HelpAll))

    @wraps(command)
    def run(**values: Any) -> None:
        values.pop("help_all", None)
        command(**values)

    return with_parameters(run, parameters)


class _Command(TyperCommand):
    """A command whose help folds the panels named "More on ..." until it is asked for all."""

    def get_params(self, ctx: Any) -> Any:
        return _flags_without_type(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        folded: dict[str, list[Any]] = {}
        for one in [] if ctx.meta.get(_ALL) else self.params:
            title = getattr(one, "rich_help_panel", None) or ""
            if _folded(title):
                folded.setdefault(title, []).append(one)
        self.epilog = "\n\n".join(
            f"{title}: {' '.join(one.opts[0] for one in options)}"
            for title, options in folded.items()
        )
        hidden = [one for options in folded.values() for one in options]
        for one in hidden:
            one.hidden = True
        try:
            super().format_help(ctx, formatter)
        finally:
            for one in hidden:
                one.hidden = False


def _folded(title: str) -> bool:
    return title.startswith("More on")


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> Any:
        return _flags_without_type(super().get_params(ctx))


def _flags_without_type(parameters: list[Any]) -> list[Any]:
    """Show ``--force``, not ``--force <bool>``: a flag takes no value."""
    for one in parameters:  # --help is among them, which only click makes
        if isinstance(one, TyperOption) and one.is_bool_flag:
            one.metavar = ""
    return parameters


class FociTyper(typer.Typer):
    """A typer app of these commands, with their options grouped in the help."""

    def __init__(self, *commands: Callable[..., None], **settings: Any) -> None:
        super().__init__(cls=_Group, no_args_is_help=True, **settings)
        for command in commands:
            self.command(cls=_Command)(_grouped(command))

    def alias(self, name: str, command: Callable[..., None]) -> None:
        """Add a command under another name, which the help does not show."""
        self.command(name, cls=_Command, hidden=True)(_grouped(command))
