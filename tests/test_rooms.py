"""The import graph: rooms in order, no cycles."""

import re
from pathlib import Path

import pytest
from tools.import_graph import (
    ENTRANCES,
    GROUND,
    ORDER,
    SOURCE,
    Import,
    existing_rooms,
    first_cycle,
    imports,
    leaves,
    modules,
    place,
)

FILES = modules()
IMPORTS = imports()
INSIDE = [name for name in FILES if place(name) not in ENTRANCES]


def places_imported_by(module: str) -> set[str]:
    return {place(one.imported) for one in IMPORTS if one.importer == module}


def test_every_folder_of_the_source_is_a_room() -> None:
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert folders == set(existing_rooms())


@pytest.mark.parametrize("module", [name for name in INSIDE if place(name) in ORDER])
def test_a_module_imports_only_from_its_own_room_and_those_before(module: str) -> None:
    before = ORDER[: ORDER.index(place(module)) + 1]
    assert places_imported_by(module) - {*before, *leaves()} == set()


@pytest.mark.parametrize("module", [name for name in INSIDE if place(name) == "metrics"])
def test_metrics_import_no_room_but_the_ground(module: str) -> None:
    assert places_imported_by(module) <= {"metrics", *GROUND, *leaves()}


@pytest.mark.parametrize("module", [name for name in INSIDE if place(name) in GROUND])
def test_the_ground_imports_no_other_room(module: str) -> None:
    assert places_imported_by(module) <= {*GROUND, *leaves()}


@pytest.mark.parametrize("name", leaves())
def test_leaves_import_no_room(name: str) -> None:
    assert places_imported_by(f"foci.{name}") <= {*leaves()}


def test_no_import_cycle() -> None:
    assert first_cycle(IMPORTS) == []


def test_a_cycle_is_found() -> None:
    round_trip = [Import("foci.a", "foci.b", True), Import("foci.b", "foci.a", True)]
    assert set(first_cycle(round_trip)) == {"foci.a", "foci.b"}
    assert first_cycle([round_trip[0], Import("foci.b", "foci.a", False)]) == []


def test_a_package_is_loaded_with_its_module() -> None:
    through_init = [Import("foci.a", "foci.b.c", True), Import("foci.b", "foci.a", True)]
    assert set(first_cycle(through_init)) == {"foci.a", "foci.b"}
    assert first_cycle([Import("foci.b", "foci.b.c", True)]) == []


def test_imports_are_read_as_written(tmp_path: Path) -> None:
    source = tmp_path / "foci"
    (source / "bags").mkdir(parents=True)
    (source / "__init__.py").touch()
    (source / "bags" / "__init__.py").touch()
    (source / "bags" / "grid.py").touch()
    (source / "errors.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "import numpy\n"
        "from foci.bags import grid\n"
        "if TYPE_CHECKING:\n"
        "    from foci.bags import Bag\n"
        "def late():\n"
        "    import foci.bags.bag\n"
    )
    assert imports(source) == [
        Import("foci.errors", "foci.bags.bag", True),
        Import("foci.errors", "foci.bags", False),
        Import("foci.errors", "foci.bags.bag", False),
    ]


def test_contributing_lists_the_rooms_in_order() -> None:
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `(\w+)/` \|", text, flags=re.MULTILINE)) == existing_rooms()
