"""Help of the commands: options grouped by subject, flags without a type."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from foci.cli.options import with_parameters

Panels = Mapping[str, Sequence[str]]
"""Names of parameters by the title of their panel."""

_TABLES = (
    "splits", "slide_table", "label_column", "fold", "only_classes", "exclude_class",
    "allow_patient_overlap", "classes", "layout", "mpp", "n_cap",
)  # fmt: skip

PANELS: Mapping[str, Panels] = {
    "audit": {
        "Options": (
            "model", "features", "labels", "out", "slides", "map", "rankings", "kappa",
            "dense", "profile", "config", "change", "workers", "force",
        ),
        "More on the model": ("expect", "device"),
        "More on the cohort": (*_TABLES, "split", "split_seed"),
        "More on the selector": ("recipe", "fit_target", "choose_by", "seeds"),
        "More on what is measured": ("k_max", "target", "random_orders"),
    },
    "train": {
        "Options": (
            "features", "labels", "out", "preset", "width", "epochs", "seed", "device", "config",
        ),
        "More on the cohort": tuple(name for name in _TABLES if name != "classes"),
        "More on training": (
            "objective", "lr", "weight_decay", "schedule", "batch_size", "balanced",
        ),
    },
    "fit": {
        "Options": ("features", "labels", "out", "recipe", "change", "seed", "device"),
        "More on the model": ("expect",),
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
        "Which tiles": ("rankings", "k", "truth"),
        "Images": ("slides", "slide_mpp"),
        "Output": ("to", "out"),
    },
    "doctor": {
        "Check": ("sample", "slides", "as_json"),
        "Cohort": (
            "labels", *(name for name in _TABLES if name not in ("classes", "n_cap")),
        ),
    },
    "view": {
        "Slides": ("slides", "slide_mpp", "marks", "accept_changed"),
        "Server": ("host", "port", "browser"),
    },
    "report": {
        "What is shown": ("kappa", "k_max", "view"),
        "Output": ("out", "accept_changed"),
    },
    "demo": {
        "Slides": ("number", "classes", "seed", "slides"),
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
