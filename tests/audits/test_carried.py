"""Share of slides carried: a whole audit against a slow loop, its bands, its table."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from foci.audits import StoredAudit
from foci.audits.audit import recompute
from foci.audits.tables import write_tables
from foci.metrics.stats import case_draws
from tests.makers.synthetic import Plan, make
from tests.metrics import references

KAPPA = 0.9


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    return make(tmp_path_factory.mktemp("carried"), Plan(n_slides=24, k_max=64, names=()))


def decisive(audit: StoredAudit, ranking: str, seed: int | None, row: int) -> int | None:
    """Decisive K of one slide by its definition, one count after the other."""
    curves = audit.curves
    kept, left = curves.get(ranking, seed)[row], curves.get(ranking, seed, "delete")[row]
    target = references.first_largest(kept.full.tolist())
    return references.decisive_k(
        kept.probs.tolist(), kept.ks.tolist(), left.probs.tolist(), left.ks.tolist(), target, KAPPA
    )


def test_the_chart_is_a_loop_over_slides_orders_and_counts(audit: StoredAudit) -> None:
    chart, curves = audit.summary.carried, audit.curves
    rows = [
        row
        for row, curve in enumerate(curves.get("native"))
        if curve.full.max() >= KAPPA and curve.n_tiles > 1
    ]
    assert chart.ks == list(range(1, 65))
    assert (chart.n_slides, chart.map, chart.relative) == (len(rows), "native", None)
    assert set(chart.lines) == {"native", "random", audit.answers.tiles.ranking}
    cases = [audit.slides[row].case_id for row in rows]
    case, weights = case_draws(cases, len(rows), audit.manifest.settings.n_boot, 0)
    for ranking, line in chart.lines.items():
        counts = [[decisive(audit, ranking, seed, row) for row in rows]
                  for seed in curves.seeds(ranking)]  # fmt: skip
        assert line.share == pytest.approx(references.carried_share(counts, chart.ks), abs=1e-12)
        for k in (4, 32):
            each = [sum(own[i] is not None and own[i] <= k for own in counts) / len(counts)
                    for i in range(len(rows))]  # fmt: skip
            drawn = [
                sum(w[case[i]] * each[i] for i in range(len(rows)))
                / sum(w[case[i]] for i in range(len(rows)))
                for w in weights.astype(float)
            ]
            low, high = np.quantile(drawn, [0.025, 0.975])
            at = chart.ks.index(k)
            assert (line.low[at], line.high[at]) == pytest.approx((low, high), abs=1e-12)


def test_the_typical_count_is_where_half_of_the_slides_are_carried(audit: StoredAudit) -> None:
    chart = audit.summary.carried
    line = chart.lines[chart.best or chart.map].share
    reached = [k for k, share in zip(chart.ks, line, strict=True) if share >= 0.5]
    assert chart.typical == (reached[0] if reached else None)


def test_shares_rise_within_their_bands(audit: StoredAudit) -> None:
    chart = audit.summary.carried
    for line in chart.lines.values():
        assert all(a <= b for a, b in zip(line.share, line.share[1:], strict=False))
        ends = zip(line.low, line.share, line.high, strict=True)
        assert all(low is not None and low <= share <= high for low, share, high in ends)
    name = chart.map
    assert chart.count_at(name, 64) == round(chart.lines[name].share[-1] * chart.n_slides)
    assert chart.lines[name].at(chart.ks, 0) == 0


def test_the_table_is_the_summary(audit: StoredAudit, tmp_path: Path) -> None:
    write_tables(tmp_path, audit.summary, audit.measured(), audit.slides, audit.skipped)
    stored = defaultdict(list)
    for row in csv.DictReader((tmp_path / "carried.csv").open(newline="")):
        stored[row["order"]].append((int(row["k"]), *(float(row[c]) for c in ("share", "low"))))
    chart = audit.summary.carried
    assert {
        name: list(zip(chart.ks, line.share, line.low, strict=True))
        for name, line in chart.lines.items()
    } == stored


def test_one_patient_has_no_band_and_where_nothing_is_sure_all_slides_count(tmp_path: Path) -> None:
    alone = make(tmp_path / "a", Plan(n_slides=1, k_max=16, names=())).summary.carried
    assert set(alone.lines["native"].low) == {None}
    few = recompute(make(tmp_path / "b", Plan(n_slides=8, k_max=16, names=())), kappa=0.999999)
    assert few.answers.map.answer == "not assessable"
    longer = sum(slide.n_tiles > 1 for slide in StoredAudit.load(tmp_path / "b").slides)
    assert (few.carried.relative, few.carried.n_slides) == (0.95, longer)
