"""Values over seeds; cells that are missing, failed, blocked or damaged are gaps that say so."""

import math
import operator
import shutil
from pathlib import Path

import pytest

from foci.metrics import shi
from foci.studies.plan import CELLS, StudyFolder
from foci.studies.read import Measure, Place, Spread, Value, combine, of_means, read_numbers
from tests.makers.studies import make

MSK = Measure("msk_cond", "native")


def gap(study: StudyFolder, place: Place, measure: Measure = MSK) -> str | None:
    return read_numbers(study).value(place, measure).gap


def test_nothing_was_run(tmp_path: Path) -> None:
    study = make(tmp_path, "one")
    assert gap(study, Place("one", "abmil")) == "seeds 1, 2: not run yet"
    assert gap(study, Place("one", "abmil", "paper-soft")) == "not part of this study"


def test_failed_and_blocked(tmp_path: Path) -> None:
    study = make(tmp_path, "one")
    plan = study.plan()
    (train,) = plan.select(kind="train", backbone="abmil", seed=1)
    study.write_record(train, error="it diverged; lower the rate")
    (audit,) = plan.select(kind="audit", backbone="abmil", seed=2, variant="main")
    study.write_record(audit, error="a slide is torn")
    assert gap(study, Place("one", "abmil")) == (
        "seed 1: train failed: it diverged; lower the rate; seed 2: audit failed: a slide is torn"
    )


def test_damaged(study: Path, tmp_path: Path) -> None:
    shutil.copytree(study, tmp_path / "copy")
    folder = StudyFolder(tmp_path / "copy")
    (audit,) = folder.plan().select(
        kind="audit", cohort="brca", backbone="abmil", seed=42, variant="main"
    )
    path = folder.path / CELLS / audit.key / "manifest.json"
    path.write_text("{}")
    said = gap(folder, Place("brca", "abmil"))
    assert said is not None
    assert said.startswith("seed 42: cannot be read: ")
    assert "manifest.json" in said


def test_a_ranking_that_was_not_run(study: Path) -> None:
    folder, place = StudyFolder(study), Place("brca", "abmil")
    numbers = read_numbers(folder)
    for measure, reason in (
        (Measure("msk_cond", "evidence"), "the ranking evidence was not run"),
        (Measure("aukc", "native", k_max=512), "the audit ends at 256 tiles"),
        (Measure("msk_cond", "native", kappa=0.42), "not measured"),
    ):
        assert numbers.value(place, measure).gap == f"seeds 42, 43: {reason}"


def test_population_and_sample() -> None:
    seeds = {"1": 2.0, "2": 4.0, "3": 9.0}
    assert Value.over(seeds).std == pytest.approx(math.sqrt((9 + 1 + 16) / 3))
    assert Value.over(seeds, spread="sample").std == pytest.approx(math.sqrt((9 + 1 + 16) / 2))
    assert Value.over({"1": 2.0}).std is None


def test_what_is_not_a_number_is_a_gap() -> None:
    value = Value.over({"1": 2.0, "2": math.nan, "3": math.inf, "4": "it diverged"})
    assert (value.mean, value.n) == (2.0, 1)
    assert value.gap == "seed 4: it diverged; seeds 2, 3: is not defined"
    assert Value.absent("not run yet").gap == "not run yet"
    assert Value.over({"1": 1.0}).gap is None


def test_differences_are_taken_seed_by_seed() -> None:
    base = Value.over({"1": 1.0, "2": 5.0, "3": "no slide reaches 0.9"})
    foci = Value.over({"1": 2.0, "3": 4.0, "2": "it diverged"})
    found = combine(operator.sub, foci, base)
    assert dict(found.seeds) == {"1": 1.0}
    assert found.gap == "seed 2: it diverged; seed 3: no slide reaches 0.9"


@pytest.mark.parametrize(("spread", "std"), [("population", 1.0), ("sample", math.sqrt(2))])
def test_a_difference_has_the_spread_that_the_study_prints(spread: Spread, std: float) -> None:
    base, foci = (Value.over({"1": x, "2": 2.0}, spread) for x in (1.0, 3.0))
    assert combine(operator.sub, foci, base).std == pytest.approx(std)
    assert of_means(operator.sub, foci, base).std == pytest.approx(std)


def test_shi_is_taken_of_means_over_shared_seeds() -> None:
    base = Value.over({"1": 4.0, "2": 8.0, "3": 100.0})
    foci = Value.over({"1": 2.0, "2": 2.0, "3": "it diverged"})
    found = of_means(shi, base, foci)
    assert found.mean == pytest.approx((6 - 2) / 6)
    assert dict(found.seeds) == pytest.approx({"1": 0.5, "2": 0.75})
    assert found.std == pytest.approx(0.125)
    assert found.gap == "seed 3: it diverged"


def test_printed_numbers_have_no_seeds() -> None:
    found = of_means(shi, Value(7.33, 0.39, 3), Value(3.21, 0.38, 3))
    assert found.mean == pytest.approx(0.562, abs=5e-4)
    assert (found.std, found.n) == (None, 3)
    assert combine(operator.sub, Value(3.21), Value.absent("not printed")).mean is None
