"""The summary against a slow loop over slides, one metric at a time, in plain Python."""

import math
from typing import Any

import numpy as np
import pytest

from foci.audits import CurveTable
from foci.audits.numbers import GREEDY
from foci.audits.records import plain
from tests.makers.curves import DELETION, Settings, random_table, slides, summarised, tiles
from tests.metrics import references

KAPPA, K_MAX, N = 0.8, 50, 14
PAPER = (16, 32, 64, 128, 256)


def mean(values: list[Any]) -> float | None:
    known = [v for v in values if v is not None and not math.isnan(v)]
    return math.fsum(known) / len(known) if known else None


def one_slide(
    curves: CurveTable, ranking: str, seed: int | None, i: int, label: int | None
) -> dict[str, Any]:
    """Every number of one slide; the class followed is the label, or the prediction if None."""
    curve, gone = curves.get(ranking, seed)[i], curves.get(ranking, seed, "delete")[i]
    full = curve.full.tolist()
    target = references.first_largest(full) if label is None else label
    rows = dict(zip(curve.ks.tolist(), curve.probs.tolist(), strict=True))
    ks = [k for k in rows if k <= K_MAX]
    probs = [rows[k] for k in ks]
    removed = gone.ks.tolist()
    each = references.deletion_drop(gone.full.tolist(), gone.probs.tolist(), removed, target)
    lost = dict(zip(removed, each, strict=True))
    below = [k for k in PAPER if k < curve.n_tiles]
    area = None
    if len(below) > 1:
        area = references.faithfulness_auc(below, [lost[k] for k in below], below[-1])
    first, rival, _ = references.specificity(probs, ks, target, full, KAPPA)
    return {
        "msk": references.msk(probs, ks, target, KAPPA),
        "stable": references.stable_msk(probs, ks, target, KAPPA),
        "aukc": references.aukc(probs, ks, curve.n_tiles, target),
        "specific": float(first is not None and first < (rival or math.inf)),
        "faithfulness": area,
        "drops": [lost.get(k) for k in DELETION],
        "kept": rows[min(32, curve.n_tiles)],
    }


def one_seed(rows: list[dict[str, Any]], labels: list[int | None]) -> dict[str, Any]:
    """Means over the slides."""
    msks, stables = [row["msk"] for row in rows], [row["stable"] for row in rows]
    known = [i for i, label in enumerate(labels) if label is not None]
    return {
        "msk_cond": references.msk_cond(msks),
        "reach": references.reach(msks),
        "restricted": references.restricted_mean(msks, K_MAX),
        "aukc": mean([row["aukc"] for row in rows]),
        "faithfulness": mean([row["faithfulness"] for row in rows]),
        "stable_restricted": references.restricted_mean(stables, K_MAX),
        "fallback": references.fallback_share(msks, stables),
        "specific": mean([row["specific"] for row in rows]),
        "selected": references.auc([rows[i]["kept"] for i in known], [labels[i] for i in known]),
    }


@pytest.mark.parametrize(("seed", "n_classes"), [(0, 2), (1, 3), (2, 4)])
def test_equals_a_slow_loop_over_the_metrics(seed: int, n_classes: int) -> None:
    names = [f"class {c}" for c in range(n_classes)]
    curves = random_table(seed, N, n_classes)
    drawn = np.random.default_rng(seed).permutation(N) % n_classes
    labels = [None if i == 3 else int(c) for i, c in enumerate(drawn)]
    known = slides(
        [f"P{i // 3}" for i in range(N)],
        [None if c is None else names[c] for c in labels],
        [c.n_tiles for c in curves.get("native")],
    )
    found = summarised(curves, known, names, Settings(kappa=KAPPA, k_max=K_MAX), tiles(curves))
    for view, group in found.views.items():
        rows = [i for i in range(N) if view == "prediction" or labels[i] is not None]
        counts: dict[str, list[float]] = {}
        for ranking, got in group.items():
            slow, drops = [], []
            for s in curves.seeds(ranking):
                each = [
                    one_slide(curves, ranking, s, i, labels[i] if view == "label" else None)
                    for i in rows
                ]
                slow.append(one_seed(each, [labels[i] for i in rows]))
                drops += [slide["drops"] for slide in each]
            for key in ("msk_cond", "reach", "aukc", "restricted", "faithfulness"):
                values = [one[key] for one in slow]
                assert getattr(got, f"{key}_seeds") == pytest.approx(plain(values)), (view, key)
                assert getattr(got, key).estimate == pytest.approx(mean(values))
            for key in ("stable_restricted", "fallback", "specific"):
                assert getattr(got, key) == pytest.approx(mean([one[key] for one in slow]))
            kept = mean([one["selected"] for one in slow])
            assert got.selected_only.auc == pytest.approx(kept)
            columns = [mean(list(column)) for column in zip(*drops, strict=True)]
            assert got.drops.mean == pytest.approx(columns)
            counts[ranking] = [one["msk_cond"] for one in slow]
        for base, key in (("native", "shi_native"), ("random", "shi_random")):
            for ranking in ("selector", GREEDY):
                want = references.shi(counts[base], counts[ranking])
                assert getattr(group[ranking], key).estimate == pytest.approx(want)
