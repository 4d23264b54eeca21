"""Slow references of the metrics, by the definitions, without NumPy."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

Row = Sequence[float]
Count = float | None
PAPER_KS = (16, 32, 64, 128, 256)


def nan(value: Count) -> bool:
    return value is None or math.isnan(value)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if len(values) else math.nan


def first_largest(row: Row) -> int:
    best = 0
    for index, value in enumerate(row):
        if value > row[best]:
            best = index
    return best


def msk(probs: Sequence[Row], ks: Sequence[int], target: int, kappa: float) -> int | None:
    for k, row in zip(ks, probs, strict=True):
        if first_largest(row) == target and row[target] >= kappa:
            return int(k)
    return None


def stable_msk(probs: Sequence[Row], ks: Sequence[int], target: int, kappa: float) -> int | None:
    for start in range(len(ks)):
        tail = zip(ks[start:], probs[start:], strict=True)
        if all(msk([row], [k], target, kappa) is not None for k, row in tail):
            return int(ks[start])
    return None


def carried_share(counts: Sequence[Sequence[Count]], ks: Sequence[int]) -> list[float]:
    """One slide, one order and one count after the other."""
    shares = []
    for k in ks:
        carried = Fraction(0)
        for slide in range(len(counts[0])):
            for order in counts:
                count = order[slide]
                if count is not None and not nan(count) and count <= k:
                    carried += Fraction(1, len(counts) * len(counts[0]))
        shares.append(float(carried))
    return shares


def reach(msks: Sequence[Count]) -> float:
    return sum(not nan(value) for value in msks) / len(msks)


def msk_cond(msks: Sequence[Count]) -> float:
    return mean([value for value in msks if value is not None and not nan(value)])


def area(ys: Row, xs: Row) -> float:
    return math.fsum((ys[j] + ys[j + 1]) / 2 * (xs[j + 1] - xs[j]) for j in range(len(xs) - 1))


def aukc(probs: Sequence[Row], ks: Sequence[int], n_tiles: int, target: int) -> float:
    if len(ks) == 1:
        return probs[0][target]
    rho = [k / n_tiles for k in ks]
    return area([row[target] for row in probs], rho) / rho[-1]


def fallback_share(msks: Sequence[Count], stable_msks: Sequence[Count]) -> float:
    pairs = zip(msks, stable_msks, strict=True)
    return mean([float(nan(late) or late != first) for first, late in pairs if not nan(first)])


def reach_split(
    msks: Sequence[Count], predictions: Sequence[int], labels: Sequence[int]
) -> tuple[float, float, int, int]:
    parts: dict[bool, list[float]] = {True: [], False: []}
    for value, predicted, true in zip(msks, predictions, labels, strict=True):
        parts[bool(predicted == true)].append(float(not nan(value)))
    return mean(parts[True]), mean(parts[False]), len(parts[True]), len(parts[False])


def ends(k_max: int | Sequence[int], n: int) -> list[float]:
    return [float(k_max)] * n if isinstance(k_max, int) else [float(end) for end in k_max]


def restricted_mean(msks: Sequence[Count], k_max: int | Sequence[int]) -> float:
    pairs = zip(msks, ends(k_max, len(msks)), strict=True)
    return mean([end if value is None or nan(value) else min(value, end) for value, end in pairs])


def kaplan_meier(
    msks: Sequence[Count], k_max: int | Sequence[int]
) -> tuple[list[float], list[float], float]:
    """Product limit with the number at risk counted anew at every step."""
    last = ends(k_max, len(msks))
    known = [math.inf if value is None or nan(value) else value for value in msks]
    slides = list(zip(known, last, strict=True))
    ks, survival = [0.0], [1.0]
    for k in sorted({value for value, end in slides if value <= end}):
        at_risk = sum(min(value, end) >= k for value, end in slides)
        events = sum(value == k and value <= end for value, end in slides)
        ks.append(k)
        survival.append(survival[-1] * (1 - events / at_risk))
    return ks, survival, max(last)


def paired_msk(base: Sequence[Count], foci: Sequence[Count]) -> tuple[float, ...]:
    pairs = list(zip(base, foci, strict=True))
    both = [(b, f) for b, f in pairs if b is not None and f is not None and not nan(b + f)]
    return (
        mean([b for b, _ in both]),
        mean([f for _, f in both]),
        len(both),
        sum(not nan(b) and nan(f) for b, f in pairs),
        sum(nan(b) and not nan(f) for b, f in pairs),
        sum(nan(b) and nan(f) for b, f in pairs),
    )


def shi(base: Row, foci: Row) -> float:
    return (mean(base) - mean(foci)) / (mean(base) + 1e-8)


def captured_headroom(base: Row, foci: Row, greedy: Row) -> float:
    possible = mean(base) - mean(greedy)
    return (mean(base) - mean(foci)) / possible if possible > 0 else math.nan


def deletion_drop(full: Row, probs: Sequence[Row], ks: Sequence[int], target: int) -> list[float]:
    return [full[target] - row[target] for row in probs]


def faithfulness_auc(ks: Sequence[int], drops: Row, k_max: int) -> float:
    return area(drops, ks) / k_max


def paper_faithfulness(drops: Sequence[Row]) -> float:
    at_each_count = zip(*drops, strict=True)
    means = [mean([drop for drop in column if not nan(drop)]) for column in at_each_count]
    return area(means, PAPER_KS) / 256


def slide_faithfulness(drops: Sequence[Row], n_tiles: Sequence[int]) -> list[float]:
    areas = []
    for row, n in zip(drops, n_tiles, strict=True):
        ks = [k for k in PAPER_KS if k < n]
        areas.append(area(row[: len(ks)], ks) / ks[-1] if len(ks) > 1 else math.nan)
    return areas


def symmetric_relevance_gain(
    kept_ks: Sequence[int], kept: Row, left_ks: Sequence[int], left: Row, whole: float, n_tiles: int
) -> float:
    """Both curves by the number of removed tiles, each straight between its points."""
    least = {0: whole} | {n_tiles - k: f for k, f in zip(kept_ks, kept, strict=True)}
    most = {0: whole} | dict(zip(left_ks, left, strict=True))
    if n_tiles == 1 or max(least) != n_tiles - 1 or max(most) != n_tiles - 1:
        return math.nan
    total = 0.0
    for sign, curve in ((1, least), (-1, most)):
        ends = sorted(curve)
        total += sign * sum(
            (b - a) * (curve[a] + curve[b]) / 2 for a, b in itertools.pairwise(ends)
        )
    return total / (n_tiles - 1)


def seed_spread(values: Row) -> float:
    return math.sqrt(mean([value * value for value in values]) - mean(values) ** 2)


def specificity(
    probs: Sequence[Row], ks: Sequence[int], target: int, full: Row, kappa: float
) -> tuple[int | None, int | None, int]:
    others = [c for c in range(len(full)) if c != target]
    rival = max(others, key=lambda c: (full[c], -c))
    return msk(probs, ks, target, kappa), msk(probs, ks, rival, kappa), rival


def binary_auc(scores: Row, positive: Sequence[bool]) -> float:
    ups = [s for s, p in zip(scores, positive, strict=True) if p]
    downs = [s for s, p in zip(scores, positive, strict=True) if not p]
    return mean([(u > d) + 0.5 * (u == d) for u in ups for d in downs])


def auc(probs: Sequence[Row], labels: Sequence[int]) -> float:
    n_classes = len(probs[0])
    each = [
        binary_auc([row[c] for row in probs], [label == c for label in labels])
        for c in range(n_classes)
    ]
    return each[1] if n_classes == 2 else mean(each)


def c_index(risk: Row, time: Row, event: Sequence[int]) -> float:
    right = pairs = 0.0
    for i in range(len(risk)):
        for j in range(len(risk)):
            earlier = time[i] < time[j] or (time[i] == time[j] and not event[j])
            if i != j and event[i] and earlier:
                pairs += 1
                right += 1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0
    return right / pairs


def macro_auc(scores: Sequence[Row], labels: Sequence[Sequence[int]]) -> float:
    columns = [(own, [mark == 1 for mark in marks]) for own, marks in zip(
        zip(*scores, strict=True), zip(*labels, strict=True), strict=True
    )]  # fmt: skip
    return mean([binary_auc(*one) for one in columns if 0 < sum(one[1]) < len(labels)])


def r_squared(predicted: Row, value: Row) -> float:
    mean = sum(value) / len(value)
    left = sum((y - f) ** 2 for f, y in zip(predicted, value, strict=True))
    return 1 - left / sum((y - mean) ** 2 for y in value)


def selected_only_auc(
    probs: Sequence[Sequence[Row]],
    ks: Sequence[Sequence[int]],
    n_tiles: Sequence[int],
    full: Sequence[Row],
    labels: Sequence[int],
    k: int | None,
) -> float:
    kept = []
    for curve, counts, n, whole in zip(probs, ks, n_tiles, full, strict=True):
        wanted = min(n, max(16, n * 3 // 100) if k is None else k)
        at = {int(count): row for count, row in zip(counts, curve, strict=True)}
        if wanted not in at and wanted < n:
            return math.nan
        kept.append(at.get(wanted, whole))
    return auc(kept, labels)


def decisive_at(kept: Row, rest: Row, target: int, kappa: float, beta: float | None) -> bool:
    lost = first_largest(rest) != target if beta is None else rest[target] <= beta
    return first_largest(kept) == target and kept[target] >= kappa and lost


def decisive_k(
    insert_probs: Sequence[Row],
    insert_ks: Sequence[int],
    delete_probs: Sequence[Row],
    delete_ks: Sequence[int],
    target: int,
    kappa: float,
    beta: float | None = None,
    *,
    stable: bool = False,
) -> int | None:
    kept, rest = (
        dict(zip(insert_ks, insert_probs, strict=True)),
        dict(zip(delete_ks, delete_probs, strict=True)),
    )
    known = [k for k in sorted(kept) if k in rest]
    for k in known:
        asked = [other for other in known if other >= k] if stable else [k]
        if all(decisive_at(kept[j], rest[j], target, kappa, beta) for j in asked):
            return int(k)
    return None


def efficiency(k_star: Sequence[Count], k: Sequence[Count], k_max: int) -> float:
    ratios = []
    for least, found in zip(k_star, k, strict=True):
        if least is not None and not nan(least) and least <= k_max:
            ratios.append(0.0 if found is None or nan(found) else least / found)
    return mean(ratios)


def net_win_share(
    a: Sequence[Count],
    b: Sequence[Sequence[Count]],
    cases: Sequence[object] | None = None,
    tie: float = 0.0,
) -> float:
    """One order against several, patient by patient; the place among infinite counts by hand."""
    slides: dict[object, list[float]] = {}
    for slide, own in enumerate(a):
        wins = []
        for order in b:
            other = order[slide]
            if nan(own) or nan(other):
                wins.append(float(nan(other)) - float(nan(own)))
            else:
                gap = (other or 0) - (own or 0)
                wins.append(0.0 if abs(gap) <= tie else math.copysign(1.0, gap))
        slides.setdefault(slide if cases is None else cases[slide], []).append(mean(wins))
    return mean([mean(own) for own in slides.values()])


def sign_flip_pvalue(values: Sequence[Fraction]) -> Fraction:
    """Share of all assignments of signs whose sum is as far from 0 as the observed one."""
    signs = list(itertools.product((1, -1), repeat=len(values)))
    sums = [abs(sum(s * v for s, v in zip(one, values, strict=True))) for one in signs]
    return Fraction(sum(one >= abs(sum(values)) for one in sums), len(signs))


def median(values: Row) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def geometric_mean_ratio(a: Sequence[Count], b: Sequence[Count]) -> tuple[float, int]:
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if not nan(x) and not nan(y)]
    tops, bottoms = (math.prod(pair[i] for pair in pairs) for i in (0, 1))
    return (tops / bottoms) ** (1 / len(pairs)) if pairs else math.nan, len(pairs)


def best_first(scores: Row) -> list[int]:
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def jaccard_at_k(first: Row, second: Row, k: int) -> float:
    a, b = set(best_first(first)[:k]), set(best_first(second)[:k])
    return len(a & b) / len(a | b)


def spearman(first: Row, second: Row) -> float:
    def mid_ranks(values: Row) -> list[float]:
        return [sum(w < v for w in values) + sum(w == v for w in values) / 2 for v in values]

    a, b = mid_ranks(first), mid_ranks(second)
    da, db = [x - mean(a) for x in a], [x - mean(b) for x in b]
    scale = math.sqrt(math.fsum(x * x for x in da) * math.fsum(x * x for x in db))
    return math.fsum(x * y for x, y in zip(da, db, strict=True)) / scale if scale else math.nan


def precision_at_k(scores: Row, truth: Sequence[int], k: int) -> float:
    return sum(truth[i] for i in best_first(scores)[:k]) / k


def froc(scores: Row, lesions: Sequence[int], false_tiles: int) -> float:
    seen, outside = set(), 0
    for i in best_first(scores):
        outside += lesions[i] == 0
        if outside > false_tiles:
            break
        seen |= {lesions[i]} - {0}
    return len(seen) / len(set(lesions) - {0})


def average_precision(scores: Row, truth: Sequence[int]) -> float:
    total = recall = 0.0
    for bar in sorted(set(scores), reverse=True):
        kept = [t for s, t in zip(scores, truth, strict=True) if s >= bar]
        total += (sum(kept) / sum(truth) - recall) * sum(kept) / len(kept)
        recall = sum(kept) / sum(truth)
    return total
