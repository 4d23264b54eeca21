"""Data moves down the list of rooms and never back up."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "foci"
ROOMS = (
    "bags", "backbones", "reveal", "testing", "metrics", "selectors", "rankings", "audits",
    "reports", "demo", "cli",
)  # fmt: skip
LEAVES = (
    "_version",
    "errors",
    "registry",
    "atomic",
    "configuration",
    "progress",
    "plural",
    "digest",
)
MODULES = sorted(p for p in SOURCE.rglob("*.py") if p.parent != SOURCE)


def imported(path: Path) -> set[str]:
    """Rooms and leaves of foci that a module imports, at the top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "foci":
                names = [f"foci.{alias.name}" for alias in node.names]
        found |= {n.split(".")[1] for n in names if n.startswith("foci.")}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_only_from_rooms_above_its_own(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0]
    allowed = {*ROOMS[: ROOMS.index(room) + 1], *LEAVES, "__version__"}
    assert imported(path) <= allowed


@pytest.mark.parametrize("name", LEAVES)
def test_leaves_import_no_room(name: str) -> None:
    assert imported(SOURCE / f"{name}.py") <= {*LEAVES}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_file_holds_one_concept(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 250
