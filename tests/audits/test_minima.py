"""The proven minimum of every slide of an audit, against all subsets; efficiency of rankings."""

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from foci import backbones, metrics
from foci.audits import StoredAudit
from foci.audits.answers import DecidedView, efficiency_of
from foci.audits.audit import recompute
from foci.audits.compare import compare
from foci.audits.folder import SLIDES, TABLES
from foci.audits.measure import Threshold
from foci.audits.run import RunOptions, run
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.backbones import Backbone
from foci.bags import Cohort
from foci.cli.commands.compare import comparison_text
from foci.cli.text import audit_text
from foci.reports import write_comparison
from foci.reports.payload import payload
from foci.reports.text import fixed, rows_of
from foci.studies.read import Measure, read_audit
from foci.studies.study import ReadBlock
from tests.makers.audits import content, settings
from tests.makers.cohorts import Row, read, write_cohort

KAPPA, D_IN = 0.7, 6
RANKINGS = ("native", "evidence", "random")
LINEAR, RELU, ROWS = ("abmil", "official"), ("abmil", "paper"), ("acmil", "official")


def classifier(name: str, preset: str, n_classes: int = 2) -> Backbone:
    """With weights large enough that slides are decided, and some of them by every tile."""
    torch.manual_seed(2)
    made = backbones.create(name, preset, d_in=D_IN, n_classes=n_classes)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(4.0)
    return made.requires_grad_(False).eval()


def tiny(folder: Path, classes: str = "ab") -> Cohort:
    """16 slides of 1 to 8 tiles of 8 patients; on every fourth one, all tiles are much alike."""
    rng = np.random.default_rng(5)
    rows = []
    for i in range(16):
        x = rng.normal(size=(1 + i % 8, D_IN)).astype(np.float32)
        if i % 4 == 3:
            x = x[:1] + 0.02 * x
        rows.append(Row(f"s{i:02d}", x, f"c{i // 2}", classes[i % len(classes)], "test"))
    return read(write_cohort(folder, rows))


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    return tiny(tmp_path_factory.mktemp("cohort"))


def audit(
    model: Backbone, cohort: Cohort, folder: Path, *, workers: int = 1, kappa: float = KAPPA
) -> StoredAudit:
    chosen = settings(rankings=RANKINGS, kappa=kappa, null_maps=0)
    return run(Sources(model, cohort), chosen, folder, RunOptions(workers=workers))


def smallest_decisive(model: Backbone, x: torch.Tensor, kappa: float) -> int | None:
    """By trying all subsets."""
    n = len(x)

    def probs(tiles: tuple[int, ...]) -> torch.Tensor:
        return torch.softmax(model(x[list(tiles)]), dim=-1)

    target = int(probs(tuple(range(n))).argmax())
    for k in range(1, n):
        for chosen in combinations(range(n), k):
            alone = probs(chosen)
            without = probs(tuple(i for i in range(n) if i not in chosen))
            suffices = int(alone.argmax()) == target and float(alone[target]) >= kappa
            if suffices and int(without.argmax()) != target:
                return k
    return None


@pytest.mark.parametrize(
    ("name", "preset", "n_classes"),
    [(*LINEAR, 2), ("mean-mil", "official", 2), (*LINEAR, 3), (*RELU, 2), (*ROWS, 2)],
)
def test_minima_of_an_audit_against_all_subsets(
    name: str, preset: str, n_classes: int, tmp_path: Path
) -> None:
    model, cohort = classifier(name, preset, n_classes), tiny(tmp_path, "abc"[:n_classes])
    done = audit(model, cohort, tmp_path / "out")
    stored = pq.read_table(done.folder / SLIDES).to_pylist()
    slides, decided = done.measured().slides, 0
    counts = {ranking: done.measured().of(ranking).decisive for ranking in RANKINGS}
    for row, (slide, sure) in enumerate(zip(stored, slides.sure, strict=True)):
        least = smallest_decisive(model, cohort.bag(slide["slide_id"]).x, KAPPA)
        k, kind, theorem = slide["k_star"], slide["k_star_kind"], slide["k_star_theorem"]
        assert theorem
        if kind == "none, proven":
            assert (k, least) == (None, None)
        elif kind == "exact":
            assert k == least
        else:
            assert kind == "lower bound"
            assert least is None or k <= least
            assert not (sure >= KAPPA and theorem == "T2")  # there it is exact
        decided += kind == "exact" and sure >= KAPPA
        for own in counts.values():
            assert k is None or not (own[:, row] < k).any()
            assert k is not None or np.isnan(own[:, row]).all()
    assert decided >= 2


@pytest.fixture(scope="module")
def done(cohort: Cohort, tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    return audit(classifier(*LINEAR), cohort, tmp_path_factory.mktemp("minima") / "out")


def test_efficiency_by_hand(done: StoredAudit) -> None:
    slides = done.measured().slides
    decided = slides.sure >= KAPPA
    for ranking in RANKINGS:
        ratios = []
        for row in np.flatnonzero(decided & (slides.k_star <= done.summary.k_max)):
            own = done.measured().of(ranking).decisive[:, row]
            ratios.append(np.mean([0 if np.isnan(k) else slides.k_star[row] / k for k in own]))
        numbers = done.summary.views["prediction"][ranking].decided
        assert numbers.efficiency_n == len(ratios) > 3
        assert numbers.efficiency.estimate == pytest.approx(np.mean(ratios))
        low, high = numbers.efficiency.low, numbers.efficiency.high
        assert high is not None
        assert 0 <= low <= np.mean(ratios) <= high <= 1
        assert max(ratios) <= 1


def test_a_slide_that_no_set_decides_is_counted(done: StoredAudit) -> None:
    slides, tiles = done.measured().slides, done.summary.answers.tiles
    chosen = (slides.sure >= KAPPA) & (slides.n_tiles > 1)
    kinds = {slide.slide_id: slide.k_star_kind for slide in done.slides}
    n = sum(kinds[slides.ids[row]] == "none, proven" for row in np.flatnonzero(chosen))
    assert n > 0
    assert tiles.proven_none == n
    sentence = f"On {n} of {tiles.n_slides} decided slides it is proven that no set of tiles"
    assert any(line.startswith(sentence) for line in tiles.sentences)


def test_necessity_runs_over_the_slides_with_a_deciding_set(done: StoredAudit) -> None:
    view = DecidedView(done.measured(), done.manifest.settings, Threshold(KAPPA))
    slides = done.measured().slides
    with_set = view.assessable & (slides.k_star <= done.summary.k_max)
    assert slides.proven[view.longer].all()
    found = view.compare("evidence", "native")
    assert found.necessity.measure == "decisive K"
    assert found.necessity.n_slides == with_set.sum() < view.longer.sum()


def test_the_third_question_goes_by_efficiency(cohort: Cohort, tmp_path: Path) -> None:
    """8 patients; with the map in the place of its own minimum, nothing is left to gain."""
    found = run(
        Sources(classifier(*LINEAR), cohort), AuditSettings(kappa=KAPPA, null_maps=9),
        tmp_path / "out",
    )  # fmt: skip
    assert found.summary.rankings == ["native", "minimal", "evidence", "random"]
    assert not (found.folder / "selectors").exists()
    order, slides = found.summary.answers.order, found.measured().slides
    by_ranking = found.summary.views["prediction"]
    best, own = by_ranking["minimal"].decided, by_ranking["native"].decided
    assert (best.efficiency.estimate, best.excess, best.excess_max) == (1, 0, 0)
    assert order.candidate == "minimal"
    assert order.efficiency == own.efficiency
    assert (order.efficiency_n, order.efficiency_beyond) == (own.efficiency_n, 0)
    low, high = own.efficiency.low or 0.0, own.efficiency.high or 0.0
    assert order.answer == (
        "native suffices" if low >= 0.8 else "headroom" if high < 0.8 else "inconclusive"
    )
    assert "No order can do better than minimal, proven." in order.sentences
    assert order.sentences[-1] == "Does training pay? It cannot: proven."
    assert any("does not know the class" in line for line in order.sentences)
    chosen = (slides.sure >= KAPPA) & (slides.n_tiles > 1)
    median = float(np.nanmedian(slides.k_star[chosen]))
    assert found.summary.answers.tiles.minimum == median
    view = DecidedView(found.measured(), found.manifest.settings, Threshold(KAPPA))
    assert view.exact
    counts = view.counts("native")[1]
    over = (counts - slides.k_star)[:, chosen]
    assert own.excess == pytest.approx(np.nanmean(over))
    assert own.excess_max == np.nanmax(over)


def test_slides_with_a_minimum_beyond_the_last_count_leave_efficiency(done: StoredAudit) -> None:
    slides, few = done.measured().slides, AuditSettings(profile="paper", k_max=1)
    chosen = slides.sure >= KAPPA
    least = slides.k_star[chosen]
    counts = np.where(slides.k_star == 1, 1.0, np.nan)[None]
    found = efficiency_of(counts, slides, chosen, few)
    assert found["efficiency_n"] == (least <= 1).sum() > 0
    assert found["efficiency_beyond"] == (least > 1).sum() > 0
    assert found["efficiency"].estimate == 1


def test_tables_hold_it(done: StoredAudit) -> None:
    rankings, slides = (
        list(csv.DictReader((done.folder / TABLES / name).open(newline="")))
        for name in ("rankings.csv", "slides.csv")
    )
    numbers = done.summary.views["prediction"]["native"].decided
    row = next(row for row in rankings if (row["view"], row["ranking"]) == ("prediction", "native"))
    assert float(row["efficiency"]) == numbers.efficiency.estimate
    assert (float(row["efficiency_low"]), float(row["efficiency_high"])) == (
        numbers.efficiency.low, numbers.efficiency.high,
    )  # fmt: skip
    assert int(row["efficiency_n"]) == numbers.efficiency_n
    assert [(row["k_star"], row["k_star_kind"]) for row in slides] == [
        ("" if slide.k_star is None else str(slide.k_star), slide.k_star_kind)
        for slide in done.slides
    ]


def test_the_report_shows_it(done: StoredAudit) -> None:
    row = next(row for row in rows_of(done.summary, "prediction") if row.title == "Efficiency")
    for ranking, cell in zip(done.summary.rankings, row.cells, strict=True):
        numbers = done.summary.views["prediction"][ranking].decided
        assert cell.text == fixed(numbers.efficiency.estimate, 2)
        assert cell.below.endswith(f"; {numbers.efficiency_n} slides")
    assert row.metric in metrics.CARDS


def test_terminal_comparison_study_and_pages_show_it(
    done: StoredAudit, cohort: Cohort, tmp_path: Path
) -> None:
    by_ranking = done.summary.views["prediction"]
    near = by_ranking["native"].decided
    lines = audit_text(done, width=160).splitlines()
    head, row = (next(one for one in lines if one.startswith(n)) for n in ("ranking", "native"))
    assert head.split()[3] == "ciency"
    assert row.split()[3] == fixed(near.efficiency.estimate, 2)

    torch.manual_seed(0)
    other = backbones.create("dsmil", "official", d_in=D_IN, n_classes=2).eval()
    second = audit(other, cohort, tmp_path / "dsmil", kappa=KAPPA)
    both = compare([done, second])
    assert both.efficient == RANKINGS
    rows = list(csv.DictReader(both.to_csv().splitlines()))
    assert float(rows[0]["efficiency:native"]) == near.efficiency.estimate
    assert rows[1]["efficiency:native"] == ""
    page = write_comparison([done, second], tmp_path / "compare.html").read_text()
    shown = fixed(near.efficiency.estimate, 2)
    assert f'data-label="efficiency, native">{shown}<' in page
    assert "Effic." in comparison_text(both, width=200)
    assert "Effi-" not in audit_text(second, width=160)

    data = payload(done, done.summary, done.manifest.settings)
    stored = {slide.slide_id: slide for slide in done.slides}
    assert data.slides.k_star == [stored[name].k_star for name in data.slides.id]
    assert data.slides.proof == [stored[name].k_star_kind for name in data.slides.id]
    assert {"exact", "none, proven"} <= {*data.slides.proof}

    numbers = read_audit(done, ReadBlock()).numbers
    assert numbers[Measure("efficiency", "native", "prediction")] == near.efficiency.estimate
    unknown = read_audit(second, ReadBlock()).numbers[Measure("efficiency", "native", "prediction")]
    assert unknown == "no minimum is proven of any decided slide"


def test_at_another_kappa_no_order_beats_the_stored_minimum(done: StoredAudit) -> None:
    """It bounds the sets that flip, whatever the confidence that makes a set sufficient."""
    for kappa in (0.55, 0.8):
        for numbers in recompute(done, kappa=kappa).views["prediction"].values():
            assert 0 < (numbers.decided.efficiency.estimate or 0) <= 1


def test_two_processes_write_the_same_bytes(
    done: StoredAudit, cohort: Cohort, tmp_path: Path
) -> None:
    audit(classifier(*LINEAR), cohort, tmp_path / "out", workers=2)
    assert content(tmp_path / "out") == content(done.folder)


def test_other_classifiers_have_no_efficiency(cohort: Cohort, tmp_path: Path) -> None:
    torch.manual_seed(0)
    other = backbones.create("dsmil", "official", d_in=D_IN, n_classes=2).eval()
    found = audit(other, cohort, tmp_path / "out", kappa=0.5)
    assert {slide.k_star_kind for slide in found.slides} == {"no bound"}
    assert {slide.k_star for slide in found.slides} == {None}
    assert found.summary.answers.tiles.proven_none is None
    for numbers in found.summary.views["prediction"].values():
        assert (numbers.decided.efficiency, numbers.decided.efficiency_n) == (None, 0)
