"""Import graph of src/foci, read from the source files without importing them.

``tests/test_rooms.py`` checks it, ``tools/architecture_picture.py`` draws it.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "foci"

GROUND = ("files", "words")
"""Rooms that all others stand on; they use no room but these."""

ROOMS = (
    *GROUND,
    "bags", "slides", "backbones", "reveal", "testing", "metrics", "selectors", "rankings",
    "audits", "studies", "reports", "exports", "viewer", "demo", "cli",
)  # fmt: skip
"""All rooms in order; a room that is planned but not built yet is skipped."""

API = "api"
"""``foci/api.py`` composes every room before the two that show FOCI off: demo and cli."""

ORDER = (*ROOMS[: ROOMS.index("demo")], API, *ROOMS[ROOMS.index("demo") :])
ENTRANCES = ("__init__", "__main__")


@dataclass(frozen=True)
class Import:
    """One import statement's target.

    Attributes:
        importer: Dotted name of the module with the statement.
        imported: Dotted name of the module of foci that it loads.
        at_load: It runs while ``importer`` is loaded: neither inside a function nor under
            ``if TYPE_CHECKING``.
    """

    importer: str
    imported: str
    at_load: bool


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """File of every module, by dotted name; a package goes by its ``__init__.py``."""
    named = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


def place(module: str) -> str:
    """Room, or top-level module, that a dotted name belongs to.

    >>> place("foci.bags.layouts.clam"), place("foci.errors"), place("foci")
    ('bags', 'errors', '__init__')
    """
    return (*module.split("."), "__init__")[1]


def existing_rooms(source: Path = SOURCE) -> tuple[str, ...]:
    """Rooms that are built, in order."""
    return tuple(room for room in ROOMS if (source / room / "__init__.py").is_file())


def leaves(source: Path = SOURCE) -> tuple[str, ...]:
    """Top-level modules that belong to no room: every room may use them, they use none."""
    names = sorted(path.stem for path in source.glob("*.py"))
    return tuple(name for name in names if name not in (*ENTRANCES, API))


def imports(source: Path = SOURCE) -> list[Import]:
    """Every import of one module of foci by another."""
    files = modules(source)
    return [
        Import(importer, target, at_load)
        for importer, path in files.items()
        for statement, at_load in _statements(ast.parse(path.read_text(encoding="utf-8")).body)
        for target in _targets(statement, files)
    ]


def first_cycle(found: Iterable[Import]) -> list[str]:
    """Modules that need each other while they are loaded, as a path; empty if there are none.

    Loading ``foci.a.b`` runs ``foci/a/__init__.py`` first, so that package counts as imported
    too, unless the importer lies inside it: then it is already being loaded.
    """
    graph: dict[str, set[str]] = {}
    for one in found:
        if one.at_load:
            inside = (one.importer, *_packages(one.importer))
            loaded = {one.imported, *_packages(one.imported)}
            graph.setdefault(one.importer, set()).update(
                target for target in loaded if target == one.imported or target not in inside
            )
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(reversed(error.args[1]))  # graphlib lists the imported module first
    return []


def _statements(
    body: Iterable[ast.AST], at_load: bool = True
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, at_load
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _statements(node.body, at_load=False)
            yield from _statements(node.orelse, at_load)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _statements(ast.iter_child_nodes(node), at_load and not inside)


def _targets(statement: ast.Import | ast.ImportFrom, files: dict[str, Path]) -> set[str]:
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names if alias.name in files}
    if statement.level:
        raise ValueError(f"line {statement.lineno}: a relative import; name the module in full")
    home = statement.module or ""
    named = (f"{home}.{alias.name}" for alias in statement.names)
    return {name if name in files else home for name in named if home in files}


def _packages(module: str) -> list[str]:
    """Packages around a module, without ``foci`` itself: everything lies inside it."""
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(2, len(parts))]
