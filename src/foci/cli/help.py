"""Help of the commands: options grouped by subject, flags without a type."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.models import OptionInfo

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table


Panels = Mapping[str, Sequence[str]]
"""Names of parameters by the title of their panel."""

_TABLES = (
    "splits", "slide_table", "label_column", "fold", "only_classes", "exclude_class",
    "allow_patient_overlap", "classes", "layout", "mpp", "n_cap",
)  # fmt: skip

PANELS: Mapping[str, Panels] = {
    "audit": {
        "Options": (
            "model", "features", "labels", "out", "slides", "heat_map", "rankings", "kappa",
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
    "doctor": {"Check": ("sample", "slides", "as_json")},
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


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The same command, whose options stand under the titles of :data:`PANELS` in its help."""
    titles = {
        name: title
        for title, names in PANELS.get(command.__name__, {}).items()
        for name in names
    }  # fmt: skip
    own = inspect.signature(command, eval_str=True).parameters
    unknown = titles.keys() - own.keys()
    if unknown:
        raise ValueError(f"{command.__name__} has no option {', '.join(sorted(unknown))}")
    listed = [*titles, *(name for name in own if name not in titles)]
    parameters = [
        _in_panel(own[name], titles[name]) if name in titles else own[name] for name in listed
    ]

    if any(map(_folded, titles.values())):
        everything = inspect.Parameter(
            "help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll
        )
        parameters.append(everything)

    @wraps(command)
    def run(**values: Any) -> None:
        values.pop("help_all", None)
        command(**values)

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    )
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _in_panel(parameter: inspect.Parameter, title: str) -> inspect.Parameter:
    kind, *described = get_args(parameter.annotation)
    moved = [copy.copy(one) for one in described]
    for one in moved:
        if isinstance(one, OptionInfo):
            one.rich_help_panel = title
    return parameter.replace(annotation=Annotated[(kind, *moved)])


class _Command(TyperCommand):
    """A command whose help folds the panels named "More on ..." until it is asked for all."""

    def get_params(self, ctx: Any) -> Any:
        return _flags_without_type(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        folded: list[Any] = [one for one in self.params if _folded(_panel(one))]
        if ctx.meta.get(_ALL):
            folded = []
        titles = dict.fromkeys(map(_panel, folded))
        names = {title: [one.opts[0] for one in folded if _panel(one) == title] for title in titles}
        self.epilog = "\n\n".join(f"{title}: {' '.join(names[title])}" for title in titles)
        for one in folded:
            one.hidden = True
        try:
            super().format_help(ctx, formatter)
        finally:
            for one in folded:
                one.hidden = False


def _folded(title: str) -> bool:
    return title.startswith("More on")


def _panel(parameter: Any) -> str:
    return getattr(parameter, "rich_help_panel", None) or ""


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> Any:
        return _flags_without_type(super().get_params(ctx))


class FociTyper(typer.Typer):
    """A typer app whose help shows ``--force``, not ``--force <bool>``: a flag takes no value."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=_Group, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Register a command, as in typer."""
        return super().command(name, cls=_Command, **settings)


def _flags_without_type(parameters: list[Any]) -> list[Any]:
    for one in parameters:  # --help is among them, which only click makes
        if isinstance(one, TyperOption) and one.is_bool_flag:
            one.metavar = ""
    return parameters


# Tables that drop columns until they fit the width of the terminal.


PLAIN_WIDTH = 100
"""Width of the output where there is no terminal."""


def console(width: int | None = None) -> Console:
    """A console as wide as the terminal; without one, plain text of 100 columns."""
    from rich.console import Console

    found = Console(highlight=False)
    own = found.width if found.is_terminal else PLAIN_WIDTH
    return Console(highlight=False, width=width or own)


def plain_table() -> Table:
    """A rich table without borders."""
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def text_of(console: Console, parts: Iterable[RenderableType]) -> str:
    """Render to text, without trailing blanks."""
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    lines = captured.get().rstrip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def first_that_fits(console: Console, tables: Sequence[Table]) -> Table:
    """The first table that fits the console's width, else the last one."""
    from rich.measure import Measurement

    unbounded = console.options.update(width=1000)
    for table in tables:
        needed = Measurement.get(console, unbounded, table).maximum
        if needed <= console.width:
            return table
    return tables[-1]
