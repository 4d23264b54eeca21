"""An audit in one call."""

import gc
from pathlib import Path
from typing import Any

import pytest

import foci
from foci.audits import Audit
from foci.errors import FociError
from foci.reports.audited import Audited
from tests.audits.runs import SHORT, make_files, model, read

QUICK: dict[str, Any] = {
    "recipe_settings": SHORT, "seeds": (0,), "random_orders": 2, "k_max": 8, "deletion": (1, 2),
    "kappa": 0.6, "n_boot": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> foci.Cohort:
    return read(make_files(tmp_path_factory.mktemp("cohort")))


def test_a_folder_that_nobody_asked_for_lives_as_long_as_the_result(cohort: foci.Cohort) -> None:
    done = foci.audit(model(), cohort, **QUICK)
    folder = done.folder
    assert isinstance(done, Audit)
    assert done.manifest["name"] == "abmil"
    assert done.summary["n_slides"] == 5
    assert done.curves.rankings == ("native", "selector", "random")
    assert done.to_html().parent == folder
    assert folder.is_dir()
    del done
    gc.collect()
    assert not folder.exists()


def test_a_folder_that_was_asked_for_stays(cohort: foci.Cohort, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    done = foci.audit(model(), cohort, out, name="mine & <yours>", **QUICK)
    assert done.verdict is not None
    assert repr(done) == (
        f"Audited('mine & <yours>', 5 slides, {done.verdict['verdict']}, {str(out)!r})"
    )
    page = done.to_html(tmp_path / "page.html", kappa=0.55)
    assert page == tmp_path / "page.html"
    shown = done._repr_html_()
    assert "mine &amp; &lt;yours&gt;" in shown
    assert "<yours>" not in shown
    assert done.verdict["sentence"] in shown
    assert shown.count("<tr>") == 4
    again = foci.audit(model(), cohort, out, name="mine & <yours>", **QUICK)
    assert again.manifest == done.manifest, "nothing is computed again"


def test_a_path_brings_the_class_names_along(cohort: foci.Cohort, tmp_path: Path) -> None:
    foci.backbones.save(model(), tmp_path / "abmil-1", classes=["a", "b"])
    done = foci.audit(tmp_path / "abmil-1", cohort, rankings=("native", "random"), **QUICK)
    assert done.manifest["name"] == "abmil-1"
    assert done.manifest["classes"] == ["a", "b"]
    assert done.manifest["sources"] == {"model": str(tmp_path / "abmil-1")}
    assert done.verdict is None
    assert "no verdict" in repr(done)
    assert "no verdict" in done._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"model": 3}, "model: is a int; wrap it"),
        ({"kapa": 0.8}, "kapa: is not a setting of AuditSettings; did you mean 'kappa'?"),
    ],
)
def test_refusals(cohort: foci.Cohort, arguments: dict[str, Any], says: str) -> None:
    given = {"model": model(), "cohort": cohort, **arguments}
    with pytest.raises(FociError, match=says.replace("?", r"\?")):
        foci.audit(**given)


def test_it_is_an_audit_like_any_other(audit: Audit) -> None:
    assert Audited(audit.folder).summary == audit.summary
