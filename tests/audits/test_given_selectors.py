"""Selectors that are fitted already: the same curves as an audit that fits them itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.audits.folder import part_name
from foci.audits.run import RunOptions, run
from foci.audits.sources import Sources
from foci.errors import FociError
from foci.selectors import fit
from tests.makers.audits import audit, content, model, settings
from tests.makers.cohorts import read

RANKINGS = ("native", "selector", "random")


@pytest.fixture
def selector(files: Path) -> Path:
    chosen = settings()
    cohort = read(files)
    fit(model(), cohort, chosen.plan, seed=0, target="prediction", out=files / "selector")
    return files / "selector"


def ready(
    files: Path, selector: Path, out: str = "ready", seed: int = 0, **changes: object
) -> StoredAudit:
    """An audit of the model of this seed with the selector that was fitted."""
    chosen = settings(**{"rankings": RANKINGS, **changes})
    sources, options = Sources(model(seed=seed), read(files)), RunOptions(selectors=[selector])
    return run(sources, chosen, files / out, options)


def test_the_curves_are_those_of_an_audit_that_fits(files: Path, selector: Path) -> None:
    own, given = audit(files), ready(files, selector)
    for name in (part_name("curves", 0), part_name("rankings", 2), "slides.parquet"):
        assert (own.folder / name).read_bytes() == (given.folder / name).read_bytes()
    assert given.manifest.selectors == own.manifest.selectors
    assert given.manifest.run_inputs["selectors"] == {
        "0": given.manifest.selectors[0].weights_sha256
    }
    assert StoredAudit.load(given.folder).curves.seeds("selector") == (0,)


def test_it_needs_no_slides_to_fit_on(files: Path, selector: Path) -> None:
    whole = content(ready(files, selector).folder)
    lines = (files / "labels.csv").read_text().splitlines()
    kept = [line for line in lines if not line.endswith(("train", "val"))]
    (files / "labels.csv").write_text("\n".join(kept) + "\n")
    alone = content(ready(files, selector, "alone").folder)
    assert alone[part_name("curves", 1)] == whole[part_name("curves", 1)]


def test_only_the_ranking_that_varies(files: Path, selector: Path) -> None:
    done = ready(files, selector, "one", rankings=("selector",))
    assert done.curves.rankings == ("selector",)
    assert done.summary.n_slides == 5


def test_a_selector_of_another_training_is_another_audit(files: Path, selector: Path) -> None:
    ready(files, selector)
    fewer = read(files)
    fewer = replace(fewer, slides=tuple(s for s in fewer if s.slide_id != "s00"))
    other = files / "other"
    fit(model(), fewer, settings().plan, seed=0, target="prediction", out=other)
    with pytest.raises(FociError, match="holds an audit with other selectors; give --force"):
        ready(files, other)
    with pytest.raises(FociError, match="holds an audit with other selectors; give --force"):
        audit(files, "ready")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipe": "paper-ste"}, r"was fitted with the recipe tuned \(.*\), not paper-ste"),
        ({"fit_target": "label"}, "was fitted for the prediction, not the label"),
        ({"seeds": (3,)}, r"is of seed 0, which is not among \[3\]; give its seed"),
        ({"seeds": (0, 3)}, "no selector of seed 3 was given"),
    ],
)
def test_another_selector_is_refused(
    files: Path, selector: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(FociError, match=message):
        ready(files, selector, **changes)
    assert not (files / "ready").exists()


def test_the_selector_of_another_classifier(files: Path, selector: Path) -> None:
    with pytest.raises(FociError, match="is not the one that the selector was fitted on"):
        ready(files, selector, seed=1)
