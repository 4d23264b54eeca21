"""Caveats beside the numbers: what is undefined, and why."""

import numpy as np

from foci.audits import Curve, CurveTable
from tests.makers.curves import CLASSES, Counts, Settings, slides, summarised, summary_of, two


def test_counts_that_were_not_revealed_have_no_selected_only_auc() -> None:
    grid = np.array([1, 4, 16, 64, 256])
    curves = CurveTable.of(
        Curve(f"s{i}", "native", None, "insert", 1000, grid, two(np.full(5, 0.9), t), two(0.9, t))
        for i, t in enumerate((0, 1))
    )
    found = summarised(curves, slides(["A", "B"], [*CLASSES]), CLASSES, Settings(), [])
    kept = found.views["prediction"]["native"].selected_only
    assert (kept.k, kept.auc, kept.adaptive_auc) == (32, None, None)
    assert (kept.n_whole, kept.n_slides) == (0, 2)
    notes = " ".join(found.notes)
    assert "K = 32 was not revealed" in notes
    assert "The adaptive counts (up to 30 tiles) were not all revealed" in notes
    assert "Deletion was not measured at 16, 32, 64, 128, 256" in notes


def test_reach_above_accuracy_is_said() -> None:
    # the model says tumour of a benign slide; the order crosses for benign on its way
    ks = np.arange(1, 5)
    curves = CurveTable.of(
        Curve(name, "native", None, "insert", 4, ks, two(np.array(p), 1), two(0.95, 1))
        for name, p in (("s0", [0.95] * 4), ("s1", [0.02, 0.5, 0.95, 0.95]))
    )
    found = summarised(curves, slides(["A", "B"], ["tumour", "benign"]), CLASSES, Settings(), [])
    assert found.views["label"]["native"].reach.estimate == 1
    assert found.views["label"]["native"].reach_wrong == 1
    assert any("native reaches more slides than the model" in note for note in found.notes)


def test_an_ordinary_audit_only_says_which_counts_were_deleted() -> None:
    counts: Counts = {"native": [[2, 4]], "selector": [[1, 2]] * 2, "random": [[5, 6]] * 2}
    found = summary_of(counts, ["A", "B"], ["tumour", "benign"], targets=[1, 0])
    grid = "Tiles were deleted on a grid of counts: decisive K is an upper bound."
    assert found.notes == [grid]


def test_one_is_no_plural() -> None:
    counts: Counts = {"native": [[None, None]]}
    found = summary_of(counts, ["A", "B"], ["tumour", None], Settings(k_max=1), k_max=1)
    notes = " ".join(found.notes)
    assert "native reaches 0.9 on no slide within 1 tile: it has no MSK there" in notes
    assert "1 of 2 slides has no label" in notes
