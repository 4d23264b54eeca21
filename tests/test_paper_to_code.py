"""Every name, command and test on the page "From the paper to the code" exists."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from foci.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "paper-to-code.md").read_text(encoding="utf-8")
SPANS = re.findall(r"`([^`\n]+)`", PAGE)

LABELS = re.findall(
    r"\S+",
    """
eq:problem eq:gumbel eq:suff eq:shi
fig:overview fig:pipeline fig:auc_vs_shi fig:explainability fig:srp_extended fig:srp_curve
tab:shi tab:selected_only_compact tab:ranking_score_extraction tab:kmax32 tab:kappa_sensitivity
tab:ncap_sensitivity tab:adaptive_k_settings tab:efficiency tab:selected_only tab:ablation
tab:lambda_ablation tab:main_nsclc tab:main_brca tab:main_panda tab:faithfulness
tab:faithfulness_xds tab:predicted_class_srp
""",
)
"""Labels of all equations, figures and tables in the source of the paper."""


def resolved(name: str) -> Any:
    """The object of a dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("label", LABELS)
def test_every_equation_table_and_figure_of_the_paper_is_there(label: str) -> None:
    assert label in SPANS


def test_every_python_name_can_be_imported() -> None:
    names = {span for span in SPANS if re.fullmatch(r"foci(\.\w+)+", span)}
    assert len(names) > 40
    assert all(callable(resolved(name)) for name in names)


def test_every_test_exists() -> None:
    named = {span for span in SPANS if span.startswith("tests/")}
    assert len(named) > 30
    for one in named:
        path, _, name = one.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), one


def test_every_command_and_option_exists() -> None:
    group: Any = get_command(app)
    lines = re.findall(r"^\$ (foci .+)$", PAGE, flags=re.MULTILINE)
    spoken = [span for span in SPANS if re.fullmatch(r"foci \w+( \w+)*", span)]
    assert lines
    assert spoken
    for line in (*lines, *spoken):
        command, words = group, line.split()[1:]
        while words and hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


def test_every_table_of_a_study_is_one_that_studies_write() -> None:
    rows = re.findall(r"^\| .+? \| (`[^|]+) \| `foci\.studies\.paper_tables", PAGE, re.MULTILINE)
    labels = {label for row in rows for label in re.findall(r"`(\w+)`", row)}
    source = "".join(
        (ROOT / "src" / "foci" / "studies" / name).read_text(encoding="utf-8")
        for name in ("paper_tables.py", "tables.py")
    ).replace("main_{cohort}", "main_COHORT")
    assert len(labels) > 12
    assert [label for label in labels if f'"{label}"' not in source and label != "kmax32"] == []
