"""What a report says: answers, facts, tables and the choice of the readout."""

import json
import statistics
from pathlib import Path
from typing import Any, get_args

import pytest

from foci.audits import StoredAudit, Summary
from foci.audits.folder import CURVES, MANIFEST, part_name
from foci.audits.records import Answers, OrderComparison, Readout
from foci.audits.selectors import RULE, judged
from foci.audits.settings import View
from foci.metrics.answers import Belief, BetterOrder, conclusive
from foci.reports.report import write_report
from foci.reports.text import (
    MAP,
    MINUS,
    NOTHING,
    ORDER,
    TILES,
    Cell,
    ComparisonLine,
    answers,
    audit_facts,
    evidence,
    fixed,
    null_table,
    readout_of,
    record_of,
    rows_of,
    seeds_of,
    settings_of,
    tone_of,
)
from foci.selectors.criterion import OrderReading
from tests.makers.audits import settings
from tests.makers.curves import Counts
from tests.makers.folders import bare_manifest, write_folder
from tests.makers.synthetic import Plan, make
from tests.reports.test_report import text_of


def changed(audit: StoredAudit, **more: Any) -> Answers:
    """The answers with other content, as an audit would store it."""
    return Answers.model_validate({**audit.answers.model_dump(), **more})


def test_every_question_has_its_answer_and_sentences(audit: StoredAudit) -> None:
    shown = answers(audit.summary, audit.manifest)
    assert [one.question for one in shown] == [MAP, TILES, ORDER]
    own = audit.answers
    for one, stored in zip(shown, (own.map, own.tiles, own.order), strict=True):
        assert one.short == stored.answer
        assert list(one.sentences) == stored.sentences
        assert one.sentences, "no answer without a reason"
        assert one.tone == tone_of(stored.answer)


@pytest.mark.parametrize("answer", [*get_args(Belief), *get_args(BetterOrder)])
def test_what_decides_nothing_has_no_colour(answer: Any) -> None:
    assert (tone_of(answer) == "none") == (not conclusive(answer))


@pytest.mark.parametrize(
    ("tone", "of"),
    [
        ("good", {"yes", "native suffices"}),
        ("part", {"only as a pointer", "sufficient, not decisive", "headroom", "mixed",
                  "no better order found"}),
        ("bad", {"no better than a content-free map", "no better than chance",
                 "worse than chance", "native is better"}),
        ("none", {"inconclusive", "not assessable"}),
    ],
)  # fmt: skip
def test_tones(tone: str, of: set[str]) -> None:
    every = {*get_args(Belief), *get_args(BetterOrder)}
    assert {answer for answer in every if tone_of(answer) == tone} == of
    assert tone_of("11 tiles") == tone_of(None) == "none"


COMPARISON: dict[str, Any] = {
    "first": "evidence",
    "second": "native",
    "sufficiency": {
        "axis": "sufficiency", "measure": "MSK", "d": 0.004, "low": -0.02, "high": 0.03,
        "pvalue": 0.5, "n_slides": 40, "n_cases": 30, "wins": 2, "losses": 1, "case_wins": 1,
        "case_losses": 1, "result": "same", "first": 2.0, "second": None,
    },
    "necessity": {
        "axis": "necessity", "measure": "decisive K", "d": -0.575, "low": -0.7111, "high": -0.43,
        "pvalue": 0.0002, "n_slides": 38, "n_cases": 29, "wins": 3, "losses": 25, "case_wins": 2,
        "case_losses": 19, "result": "worse", "first": 12.5, "second": 4.0, "ratio": 1.1,
    },
}  # fmt: skip


def test_the_table_holds_every_comparison_that_was_made(audit: StoredAudit) -> None:
    own = audit.answers
    order = {**own.order.model_dump(), "against_native": COMPARISON, "selector": COMPARISON}
    full = changed(audit, order=order)
    compared: list[OrderComparison | None] = [
        full.map.comparison,
        full.order.against_native,
        full.order.against_random,
        full.order.selector,
    ]
    axes = [
        (one.first, one.second, axis)
        for one in compared
        if one is not None
        for axis in (one.sufficiency, one.necessity)
        if axis is not None
    ]
    lines = evidence(full)
    assert len(axes) > 5
    assert [(line.rankings, line.axis, line.interval) for line in lines] == [
        (f"{first} against {second}", f"{axis.axis} ({axis.measure})", axis)
        for first, second, axis in axes
    ]
    assert all(
        line.text.replace(MINUS, "-")
        == f"{_signed(axis.d)} ({_signed(axis.low)} to {_signed(axis.high)})"
        for line, (_, _, axis) in zip(lines, axes, strict=True)
    )


def _signed(value: float) -> str:
    return f"{round(value, 2):+.2f}" if round(value, 2) else "0.00"


def test_one_line_per_axis_that_was_compared(audit: StoredAudit) -> None:
    without = {**COMPARISON, "necessity": None}
    nothing = {"against_native": without, "against_random": None, "selector": None}
    order = {**audit.answers.order.model_dump(), **nothing}
    map_ = {**audit.answers.map.model_dump(), "comparison": None}
    (line,) = evidence(changed(audit, order=order, map=map_))
    assert line == ComparisonLine(
        "evidence against native",
        "sufficiency (MSK)",
        line.interval,
        f"0.00 ({MINUS}0.02 to +0.03)",
        pvalue="p = 0.500",
        medians="2 and none",
        ratio="",
        slides="2, 1, 37",
        patients="1, 1, 28",
    )


def test_rankings_beside_maps_that_know_nothing(audit: StoredAudit) -> None:
    own = audit.answers.map.null
    assert own is not None
    order = {**audit.answers.order.model_dump(), "null": None}
    sampled = {**own.model_dump(), "d": 0.5, "beaten": 18, "n_maps": 19, "pvalue": 0.1, "best": 0.6,
               "sampled": True, "n_slides": 9, "references": {"the length": -0.25}}  # fmt: skip
    map_ = {**audit.answers.map.model_dump(), "null": sampled}
    table = null_table(changed(audit, map=map_, order=order))
    assert table is not None
    assert table.rows == (
        ("native", "+0.50", "18 of 19 (p = 0.100)"),
        ("the length", f"{MINUS}0.25", NOTHING),
    )
    assert (
        "Each of 19 random directions in feature space is a map; the best has +0.60." in table.note
    )
    assert "(a sample of 9 decided slides)" in table.note
    measure = "loses more probability without the first tiles", "by the probability lost without"
    assert measure[0] in table.note
    assert measure[1] in " ".join(audit.answers.map.sentences), "the answer says the same"


def test_the_page_has_the_table_only_where_such_maps_were_run(
    audit: StoredAudit, page: Path, tmp_path: Path
) -> None:
    title, text = "Beside maps that know nothing", text_of(page)
    table = null_table(audit.answers)
    assert table is not None
    assert [row[0] for row in table.rows[:2]] == ["native", "selector"]
    assert text.count(title) == 1 + text.count(f"{title} (random directions")
    for row in table.rows:
        assert " ".join(row) in text
    without = make(tmp_path / "a", Plan(n_slides=6, null_maps=0))
    assert null_table(without.answers) is None
    assert title not in text_of(write_report(without))


def test_rows_name_the_map_that_was_judged(tmp_path: Path) -> None:
    counts: Counts = {"cam": [[9, 9, 9]], "evidence": [[2, 2, 2]], "random": [[6, 6, 6]]}
    mapped = {"map": "cam=from-file:/maps/cam.csv", "rankings": ("native", "evidence", "random")}
    audit = write_folder(tmp_path / "a", counts, ["P1", "P2", "P3"], ["benign"] * 3, change=mapped)
    rows = {row.title: row.hint for row in rows_of(audit.summary, "prediction")}
    assert "SHI against cam" in rows
    assert rows["Paired MSK"] == "cam and this one, slides that both reach"
    assert rows["Wilcoxon p"] == "restricted K against cam, by patient"
    assert "native" not in text_of(write_report(audit)).split("Settings")[0]


def test_a_proxy_is_called_a_stand_in(audit: StoredAudit) -> None:
    own = answers(audit.summary, audit.manifest)[0]
    assert not any("stand-in" in sentence for sentence in own.sentences)
    proxy = audit.manifest.backbone.model_copy(update={"score": "proxy"})
    manifest = audit.manifest.model_copy(update={"backbone": proxy})
    assert "stand-in" in answers(audit.summary, manifest)[0].sentences[-1]


def test_an_audit_that_decides_nothing_still_answers(multiclass: StoredAudit) -> None:
    assert multiclass.answers.n_decided == 0
    shown = answers(Summary.model_validate(multiclass.summary.model_dump()), multiclass.manifest)
    assert [one.short for one in shown] == ["not assessable"] * 3
    assert "decided no slide" in shown[0].sentences[0]


def test_the_line_under_the_title(audit: StoredAudit, unlabelled: StoredAudit) -> None:
    facts = dict(audit_facts(audit.manifest, audit.summary))
    assert facts["classifier"] == "abmil (132,609 parameters)"
    assert facts["slides"] == "20 of 10 patients, 2 skipped in the whole cohort"
    assert facts["AUC"] == f"{audit.summary.full_bag.auc:.3f}"
    assert facts["confidence κ"] == "0.9"
    assert "AUC" not in dict(audit_facts(unlabelled.manifest, unlabelled.summary))


def test_one_is_no_plural(audit: StoredAudit) -> None:
    summary = audit.summary.model_copy(update={"n_cases": 1, "k_max": 1, "n_skipped": 0})
    facts = dict(audit_facts(audit.manifest, summary))
    assert (facts["slides"], facts["at most"]) == ("20 of 1 patient", "1 tile")


def test_a_bare_manifest_will_do(audit: StoredAudit) -> None:
    bare = bare_manifest("m")
    facts = dict(audit_facts(bare, audit.summary))
    assert facts["classifier"] == "abmil (1 parameters)"
    assert "split" not in facts
    assert [name for name, _ in record_of(bare)] == ["audit key", "started", "weights"]


def test_the_record_has_every_hash(audit: StoredAudit) -> None:
    record = dict(record_of(audit.manifest))
    assert record["weights"] == "f" * 64
    assert record["features"] == "a" * 64
    assert (
        record["SHA-256: curves/part-00000.parquet"] == audit.manifest.files[part_name(CURVES, 0)]
    )
    assert record["selector, seed 1"].endswith(f"epoch 10, weights {'1' * 64}")
    assert record["finished"] == "2026-11-16T08:03:20+00:00"


def test_settings_are_words(audit: StoredAudit) -> None:
    settings = dict(settings_of(audit.manifest.settings))
    assert settings["rankings"] == "native, selector, random"
    assert settings["map"] == "none"
    assert settings["recipe_settings"] == "none"


def test_a_map_is_named_without_the_path_to_it(audit: StoredAudit) -> None:
    stored = audit.manifest.settings
    changes = {
        "map": "Grad-CAM=from-file:/home/me/grad cam.csv",
        "rankings": ("native", "from-file=/a/b.csv"),
    }
    settings = dict(settings_of(stored.model_copy(update=changes)))
    assert settings["map"] == "Grad-CAM=from-file:grad cam.csv"
    assert settings["rankings"] == "native, from-file=b.csv"
    manifest = audit.manifest.model_copy(update={"maps": {"/home/me/grad cam.csv": "e" * 64}})
    assert dict(record_of(manifest))["SHA-256: grad cam.csv"] == "e" * 64


def test_truth_by_ranking(page: Path) -> None:
    text = text_of(page)
    for name, first8, average in (("native", 0.41, 0.33), ("selector", 0.83, 0.71)):
        values = (first8, first8 / 2, average, first8, 0.5)
        cells = [
            f"{fixed(v, 2)} {fixed(v - 0.1, 2)} to {fixed(v + 0.1, 2)}; chance 0.06" for v in values
        ]
        assert " ".join((name, *cells)) in text
    assert "20 slides of 20 patients with marked tiles. Small print" in text


def cells(audit: StoredAudit, view: View, title: str) -> tuple[Cell, ...]:
    (row,) = [row for row in rows_of(audit.summary, view) if row.title == title]
    return row.cells


@pytest.mark.parametrize("view", ["prediction", "label"])
def test_numbers_and_intervals(audit: StoredAudit, view: View) -> None:
    for cell, name in zip(
        cells(audit, view, "Restricted mean K"), audit.curves.rankings, strict=True
    ):
        found = audit.summary.views[view][name].restricted
        assert cell.text == f"{found.estimate:.1f}"
        assert cell.below == f"{found.low:.1f} to {found.high:.1f}"
    for cell, name in zip(cells(audit, view, "Reach"), audit.curves.rankings, strict=True):
        found = audit.summary.views[view][name].reach
        assert cell.text == f"{100 * found.estimate:.0f}%"


def test_a_ranking_is_not_compared_with_itself(audit: StoredAudit) -> None:
    native, selector, random = cells(audit, "prediction", "SHI against native")
    assert native == Cell(NOTHING)
    assert selector.text != NOTHING
    assert random.text.startswith(MINUS)


def test_rows_that_say_nothing_are_left_out(audit: StoredAudit, unlabelled: StoredAudit) -> None:
    assert "Reach, wrong slides" in {row.title for row in rows_of(audit.summary, "prediction")}
    titles = {row.title for row in rows_of(unlabelled.summary, "prediction")}
    assert "AUC, 32 tiles kept" not in titles
    assert "Reach, wrong slides" not in titles
    assert "Captured headroom" not in titles


def test_every_seed_is_listed_where_there_are_several(audit: StoredAudit) -> None:
    rows = seeds_of(audit.summary, "prediction")
    counts = {(ranking, values.count("·") + 1) for ranking, _, _, values in rows}
    assert counts == {("selector", 3), ("random", 10)}
    mean, values = next(row[2:] for row in rows if row[1] == "reach")
    seeds = audit.summary.views["prediction"]["selector"].reach_seeds
    assert values == " · ".join(f"{value:.2f}" for value in seeds)
    assert mean == f"{statistics.mean(seeds):.2f} ± {statistics.pstdev(seeds):.2f}"


def test_one_is_no_plural_in_cells(audit: StoredAudit) -> None:
    summary = audit.summary.model_dump()
    numbers = summary["views"]["prediction"]["selector"]
    numbers["wilcoxon"] |= {"pvalue": 1.0, "n_pairs": 1}
    numbers["paired"]["n_both"] = 1
    below = {
        row.title: row.cells[summary["rankings"].index("selector")].below
        for row in rows_of(Summary.model_validate(summary), "prediction")
    }
    assert (below["Wilcoxon p"], below["Paired MSK"]) == ("1 patient differs", "1 slide")
    numbers["wilcoxon"]["n_pairs"] = 2
    again = {row.title: row.cells for row in rows_of(Summary.model_validate(summary), "prediction")}
    assert "2 patients differ" in [cell.below for cell in again["Wilcoxon p"]]


def chosen(n_better: int, n: int = 18) -> Readout:
    """A choice on slides of one patient each, on some of which the selector needs a tile less."""
    evidence = OrderReading(msk=2, decisive=5, area=0.3)
    better = OrderReading(msk=2, decisive=4, area=0.3)
    own = [better] * n_better + [evidence] * (n - n_better)
    return judged([evidence] * n, own, [f"P{i}" for i in range(n)], settings())


def with_readout(folder: Path, made: dict[str, object]) -> StoredAudit:
    make(folder, Plan(n_slides=4, n_tiles=8, k_max=8))
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "readout": made}))
    return StoredAudit.load(folder)


def test_the_table_says_who_won_and_by_what(tmp_path: Path) -> None:
    made = chosen(1)
    audit = with_readout(tmp_path, made.model_dump(mode="json"))
    table = readout_of(audit.manifest)
    assert table is not None
    assert table.rows == (
        ("evidence", True, ("5", "100%", NOTHING, NOTHING, "0.300")),
        ("selector", False, ("5", "100%", "1", "0", "0.300")),
    )
    text = text_of(write_report(audit))
    assert "Which order answers “which tiles?” The evidence order does. It was chosen on" in text
    assert "18 decided validation slides of 18 patients; no audited slide was read for it." in text
    line = table.lines[0]
    assert f"selector against evidence necessity (decisive K) {line.text} p = 1.000 unclear" in text
    assert f"{line.medians} {line.ratio} 1, 0, 17 slides 1, 0, 17 patients" in text
    assert f"The rule, fixed in advance: {RULE}." in text


def test_the_selector_as_the_winner() -> None:
    assert chosen(9).chosen == "selector"


@pytest.mark.parametrize("median", [3.0, None])
def test_an_order_without_a_median_says_so(tmp_path: Path, median: float | None) -> None:
    made = chosen(9).model_dump(mode="json")
    made["rows"][0]["decisive"] = median
    table = readout_of(with_readout(tmp_path, made).manifest)
    assert table is not None
    assert table.rows[0][2][0] == ("more than half have none" if median is None else "3")


def test_without_a_choice_there_is_no_section(audit: StoredAudit, page: Path) -> None:
    assert audit.manifest.readout is None
    assert "Which order answers" not in text_of(page)
