"""tab:kmax32: every backbone with and without selector at a small budget of tiles."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from foci.metrics import shi
from foci.metrics.deletion import PAPER_COUNTS
from foci.studies.cells import Cost
from foci.studies.plan import N_CAP
from foci.studies.published import COHORTS, FOCI, PublishedNumber, PublishedNumbers
from foci.studies.read import (
    EVIDENCE,
    MAIN,
    NATIVE,
    RANDOM,
    SELECTOR,
    Measure,
    Numbers,
    Place,
    StudyNumbers,
    Value,
    combine,
    of_means,
)
from foci.studies.table import (
    AUKC,
    MSK,
    REACH,
    RESTRICTED,
    RESTRICTED_NOTE,
    SHARE,
    SRP,
    WITH,
    Cell,
    Column,
    Row,
    Table,
    cells,
    primary,
    shown,
    srp_values,
)
from foci.words import counted

BUDGET = 32
ROWS = ((NATIVE, "", ""), (SELECTOR, FOCI, f" {WITH}"), (RANDOM, "+random", " random order (ours)"))


def budget_table(numbers: Numbers, paper: PublishedNumbers | None, budget: int = BUDGET) -> Table:
    """Reveal numbers within ``budget`` tiles, and which share of a bag that budget is."""
    rows = []
    label = f"kmax{budget}"
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            place = Place(cohort, backbone)
            for ranking, end, name in ROWS:
                values = srp_values(numbers, place, ranking, k_max=budget)
                values["share_32"] = numbers.value(place, Measure("share_32"))
                own = cells(values, paper, label, cohort, backbone + end)
                rows.append(Row((shown(backbone) + name,), own, shown(cohort)))
    return Table(
        label=label,
        title=f"At most {budget} tiles revealed, kappa 0.9, label view",
        heads=("Method",),
        columns=(*SRP, RESTRICTED, SHARE),
        rows=tuple(rows),
        notes=(
            RESTRICTED_NOTE,
            "Where 32 tiles are nearly the whole bag, this table says little about compactness: "
            "see the share.",
        ),
    )


# tab:main: every backbone under its own ranking and under the selector, one table per cohort.


MAIN_LABEL = "main"
DELTAS = tuple(
    Column(f"{column.key}_delta", f"Δ {column.head}", column.digits, column.better, signed=True)
    for column in SRP
)
OURS = (
    RESTRICTED,
    Column("decided_k", "K, decided slides", 2, "lower"),
    Column("decisive_k", "decisive K (median)", 1, "lower"),
    Column("decisive_share", "decisive sets (%)", 1, "higher"),
)
RANKINGS = {NATIVE: "", SELECTOR: FOCI, EVIDENCE: "+evidence", RANDOM: "+random"}
"""Rankings by the end of their row's name."""

NAMES = {SELECTOR: WITH, EVIDENCE: "evidence (ours)", RANDOM: "random order (ours)"}
MAIN_NOTES = (
    "MSK_cond, Reach and AUKC follow the label, as in the paper; differences are against the "
    "backbone's own ranking, seed by seed.",
    RESTRICTED_NOTE,
    "K over decided slides and decisive K follow the model's prediction, over slides of which the "
    "model is at least kappa sure with all tiles; decisive K is the median count of tiles that "
    "suffice and without which the decision flips. Random orders: mean over the orders.",
)


def main_table(numbers: Numbers, cohort: str, paper: PublishedNumbers | None) -> Table:
    """Conditional MSK, Reach, AUKC of one cohort, the selector's differences, and our columns."""
    rows = []
    for backbone in numbers.backbones:
        place = Place(cohort, backbone)
        base = srp_values(numbers, place, NATIVE)
        for ranking, end in RANKINGS.items():
            own = srp_values(numbers, place, ranking)
            if ranking == EVIDENCE and own["aukc"].mean is None:
                continue
            values = {**own, **_ours(numbers, place, ranking)}
            if ranking != NATIVE:
                values |= {
                    f"{c.key}_delta": combine(operator.sub, own[c.key], base[c.key]) for c in SRP
                }
            name = shown(backbone) if ranking == NATIVE else f"{shown(backbone)} {NAMES[ranking]}"
            rows.append(Row((name,), cells(values, paper, MAIN_LABEL, cohort, backbone + end)))
    return Table(
        label=f"{MAIN_LABEL}_{cohort}",
        title=f"Reveal results on {shown(cohort)}: each backbone's own ranking, and others",
        heads=("Method",),
        columns=(MSK, REACH, AUKC, *DELTAS, *OURS),
        rows=tuple(rows),
        notes=MAIN_NOTES,
    )


def _ours(numbers: Numbers, place: Place, ranking: str) -> dict[str, Value]:
    return {
        name: numbers.value(place, Measure(name, ranking, "prediction"))
        for name in ("decided_k", "decisive_k", "decisive_share")
    }


# tab:predicted_class_srp: reveal numbers that follow the model's own prediction.


PREDICTED_LABEL = "predicted_class_srp"
PREDICTED_REACH = Column("reach", "Reach (share)", 3, "higher")


def predicted_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """Every backbone, native and selector; the paper prints TransMIL."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            for ranking, end, name in ((NATIVE, "", ""), (SELECTOR, FOCI, f" {WITH}")):
                values = {
                    metric: numbers.value(
                        Place(cohort, backbone), Measure(metric, ranking, "prediction")
                    )
                    for metric in ("reach", "msk_cond", "aukc")
                }
                values["reach"] = combine(lambda percent: percent / 100, values["reach"])
                own = cells(values, paper, PREDICTED_LABEL, cohort, backbone + end)
                rows.append(Row((shown(backbone) + name,), own, shown(cohort)))
    return Table(
        label=PREDICTED_LABEL,
        title="Reveal results for the predicted class: is the model's own decision recovered?",
        heads=("Method",),
        columns=(PREDICTED_REACH, MSK, AUKC),
        rows=tuple(rows),
        notes=("Correctness is not asked for here, so that Reach is higher than in label view.",),
    )


# tab:shi: Selection Headroom Index per backbone and cohort, against native and against random.


SHI_LABEL, MEAN = "shi", "mean"
THREE = set(COHORTS)
"""The paper's mean is over these: it stands beside a mean of the same three only."""

SHI_NOTES = (
    "SHI is the relative saving of MSK_cond, (base - FOCI) / base, on means over seeds; the spread "
    "is that of SHI seed by seed. Near a base of one tile the ratio explodes: read it beside the "
    "counts.",
    "Against random, the base is the mean over random orders: a selector can beat a backbone's own "
    "ranking and lose to chance.",
)


def shi_of(numbers: Numbers, place: Place, base: str = NATIVE) -> Value:
    """SHI of the selector at a place, against another ranking, on means over seeds."""
    values = (numbers.value(place, Measure("msk_cond", name)) for name in (base, SELECTOR))
    return of_means(shi, *values)


def shi_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """One row per backbone, grouped by family; SHI of every cohort and their mean."""
    rows = []
    groups = list(dict.fromkeys(f.partition("/")[0] for f in numbers.backbones.values()))
    for backbone, family in sorted(
        numbers.backbones.items(), key=lambda item: groups.index(item[1].partition("/")[0])
    ):
        group, _, kind = family.partition("/")
        cells: dict[str, Cell] = {}
        for base, end in ((NATIVE, ""), (RANDOM, "_random")):
            each = {c: shi_of(numbers, Place(c, backbone), base) for c in numbers.cohorts}
            each[MEAN] = over_cohorts(each)
            for cohort, value in each.items():
                comparable = base == NATIVE and (cohort != MEAN or set(numbers.cohorts) == THREE)
                printed = (
                    paper.get(SHI_LABEL, cohort, backbone, SHI_LABEL)
                    if paper and comparable
                    else None
                )
                cells[f"{cohort}{end}"] = Cell(value, printed)
        rows.append(Row((kind, shown(backbone)), cells, group))
    names = (*numbers.cohorts, MEAN)
    return Table(
        label=SHI_LABEL,
        title="Selection Headroom Index per backbone and cohort",
        heads=("Family", "Backbone"),
        columns=(
            *(Column(name, shown(name), 3, "higher", signed=True) for name in names),
            *(
                Column(f"{name}_random", f"{shown(name)}, against random", 3, "higher", signed=True)
                for name in names
            ),
        ),
        rows=tuple(rows),
        notes=SHI_NOTES,
    )


def over_cohorts(each: dict[str, Value]) -> Value:
    """Mean of a value over cohorts; absent where a cohort has none."""
    absent = [name for name, value in each.items() if value.mean is None]
    if absent:
        return Value.absent(f"no value on {', '.join(map(shown, absent))}")
    means = [value.mean for value in each.values() if value.mean is not None]
    return Value(sum(means) / len(means), None, min(value.n for value in each.values()))


# tab:kappa_sensitivity: the same curves read at other operating confidences.


THRESHOLDS_LABEL = "kappa_sensitivity"


def kappa_table(numbers: Numbers, paper: PublishedNumbers | None, kappas: Sequence[float]) -> Table:
    """Selector (the paper's rows) and native ranking of the primary backbone at every kappa."""
    backbone = primary(numbers.backbones)
    rows = []
    for cohort in numbers.cohorts:
        for ranking, name in ((SELECTOR, f" {WITH}"), (NATIVE, "")):
            for kappa in kappas:
                values = srp_values(numbers, Place(cohort, backbone), ranking, kappa=kappa)
                printed = paper if ranking == SELECTOR and backbone == "transmil" else None
                own = cells(values, printed, THRESHOLDS_LABEL, cohort, f"{kappa:g}")
                rows.append(Row((shown(backbone) + name, f"{kappa:g}"), own, shown(cohort)))
    return Table(
        label=THRESHOLDS_LABEL,
        title="Sensitivity to the operating confidence κ",
        heads=("Method", "κ"),
        columns=(*SRP, RESTRICTED),
        rows=tuple(rows),
        notes=("AUKC does not depend on kappa. MSK_cond has other slides at every kappa.",),
    )


# tab:ncap_sensitivity: the selector on bags that keep fewer or more tiles.


TILE_CAPS_LABEL = "ncap_sensitivity"


def cap_table(numbers: StudyNumbers, paper: PublishedNumbers | None, n_cap: int) -> Table:
    """Every tile cap of the sweep beside the study's own, for the backbones that were swept."""
    swept = [place for place in numbers.audits if place.variant == N_CAP]
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            here = [p for p in swept if (p.cohort, p.backbone) == (cohort, backbone)]
            if not here:
                continue
            places = {n_cap: Place(cohort, backbone), **{p.n_cap or 0: p for p in here}}
            for cap in sorted(places):
                values = srp_values(numbers, places[cap], SELECTOR)
                printed = paper if backbone == "transmil" else None
                own = cells(values, printed, TILE_CAPS_LABEL, cohort, str(cap))
                rows.append(Row((f"{shown(backbone)} {WITH}", str(cap)), own, shown(cohort)))
    return Table(
        label=TILE_CAPS_LABEL,
        title="Sensitivity to the number of tiles kept before the audit (n_cap)",
        heads=("Method", "n_cap"),
        columns=(*SRP, RESTRICTED),
        rows=tuple(rows),
        notes=("A bag with fewer tiles than n_cap is the same at every larger cap.",),
    )


# tab:ablation, tab:lambda_ablation: other gates, no rationale loss, one loss left out.


GATES = ("freeze-only", "paper-soft")
CONTROL = "freeze-only"


def gate_table(numbers: StudyNumbers, paper: PublishedNumbers | None, recipe: str) -> Table:
    """Native ranking, control without losses, soft gate, and the main recipe."""
    rows = _rows(numbers, paper, "ablation", recipe, lambda variant: variant in GATES, native=True)
    return Table(
        label="ablation",
        title="Gate of the selector",
        heads=("Backbone", "Method"),
        columns=(*SRP, RESTRICTED),
        rows=rows,
        notes=(RESTRICTED_NOTE,),
    )


def loss_table(numbers: StudyNumbers, paper: PublishedNumbers | None, recipe: str) -> Table:
    """Each loss of the main recipe left out or weighted otherwise."""

    def chosen(variant: str) -> bool:
        return variant == CONTROL or variant.startswith(("no-", "lambda."))

    rows = _rows(numbers, paper, "lambda_ablation", recipe, chosen, native=False)
    return Table(
        label="lambda_ablation",
        title="Losses of the selector",
        heads=("Backbone", "Method"),
        columns=(*SRP, RESTRICTED),
        rows=rows,
        notes=(
            RESTRICTED_NOTE,
            "no-x sets the weight of loss x to 0. The paper's freeze-only row has two seeds.",
        ),
    )


def _rows(
    numbers: StudyNumbers,
    paper: PublishedNumbers | None,
    label: str,
    recipe: str,
    chosen: Callable[[str], bool],
    *,
    native: bool,
) -> tuple[Row, ...]:
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            own = [p for p in numbers.audits if (p.cohort, p.backbone) == (cohort, backbone)]
            variants = [p.variant for p in own if chosen(p.variant)]
            if not variants:
                continue
            listed = [(backbone, MAIN, NATIVE)] if native else []
            listed += [(v, v, SELECTOR) for v in variants] + [(recipe, MAIN, SELECTOR)]
            for row, variant, ranking in listed:
                values = srp_values(numbers, Place(cohort, backbone, variant), ranking)
                printed = paper if backbone == "transmil" else None
                name = "own ranking" if ranking == NATIVE else row
                found = cells(values, printed, label, cohort, row)
                rows.append(Row((shown(backbone), name), found, shown(cohort)))
    return tuple(rows)


# tab:adaptive_k_settings: validation AUKC of selectors trained with an adaptive budget.


ADAPTIVE_LABEL = "adaptive_k_settings"
SEED42 = "val_aukc_seed42"
ADAPTIVE_COLUMNS = (
    Column("val_aukc", "validation AUKC, to 256", 3, "higher"),
    Column("val_aukc_32", "to 32", 3, "higher"),
)


def adaptive_table(numbers: StudyNumbers, paper: PublishedNumbers | None) -> Table:
    """One row per cohort, share and smallest count; a single seed stands beside a single seed."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            for variant, (alpha, k_min) in sorted(
                numbers.adaptive.items(), key=lambda item: item[1]
            ):
                place = Place(cohort, backbone, variant)
                if place not in numbers.validation:
                    continue
                value = numbers.validation_score(place)
                column = "val_aukc" if len(numbers.validation[place]) > 1 else SEED42
                printed = None
                if paper is not None and k_min == 16 and backbone == "transmil":
                    printed = paper.get(ADAPTIVE_LABEL, cohort, f"{alpha:g}", column)
                names = (shown(cohort), shown(backbone), f"{alpha:g}", str(k_min))
                short = numbers.over(numbers.short_validation.get(place, {}))
                cells = {"val_aukc": Cell(value, printed), "val_aukc_32": Cell(short, printed)}
                rows.append(Row(names, cells))
    return Table(
        label=ADAPTIVE_LABEL,
        title="Adaptive budget max(K_min, alpha N) of the selector's training",
        heads=("Dataset", "Backbone", "alpha", "K_min"),
        columns=ADAPTIVE_COLUMNS,
        rows=tuple(rows),
        notes=(
            "Score of the epoch that was kept, on the validation slides. It is the area up to 256 "
            "tiles over a grid of counts, and the same up to 32. The paper does not say up to "
            "which count its own runs, so its number stands beside both.",
        ),
    )


# tab:efficiency: parameters, time of an inference and of a reveal, peak memory, their ratio.


EFFICIENCY_LABEL = "efficiency"
PARAMETERS = Column("parameters_m", "parameters (M)", 2)
RATIO = Column("srp_ratio", "reveal / inference", 1, "lower")
EFFICIENCY_COLUMNS = (
    PARAMETERS,
    Column("inference_ms", "inference (ms)", 2, "lower"),
    Column("srp_ms", "reveal (ms)", 1, "lower"),
    RATIO,
    Column("memory_mb", "peak memory (MB)", 0, "lower"),
    Column("srp_memory_mb", "peak memory, reveal (MB)", 0, "lower"),
)


def efficiency_table(numbers: StudyNumbers, paper: PublishedNumbers | None) -> Table:
    """One row per backbone, and one with its selector; only ratios stand beside the paper's."""
    rows, devices = [], set()
    for backbone in numbers.backbones:
        cost = numbers.costs.get(backbone, "not measured in this study")
        if isinstance(cost, str):
            gap = {column.key: Cell(Value.absent(cost)) for column in EFFICIENCY_COLUMNS}
            rows.append(Row((shown(backbone),), gap))
            continue
        devices.add(f"{cost.device} ({cost.machine}, {counted(cost.threads, 'thread')})")
        for own, end, name in ((cost.native, "", ""), (cost.selector, FOCI, f" {WITH}")):
            cells = {key: Cell(value) for key, value in _values(own).items()}
            if paper is not None:
                row = backbone + end
                cells[RATIO.key] = Cell(cells[RATIO.key].value, published_ratio(paper, row))
                printed = paper.get(EFFICIENCY_LABEL, "nsclc", row, PARAMETERS.key)
                cells[PARAMETERS.key] = Cell(cells[PARAMETERS.key].value, printed)
            rows.append(Row((shown(backbone) + name,), cells))
    where = f" on {', '.join(sorted(devices))}" if devices else ""
    return Table(
        label=EFFICIENCY_LABEL,
        title=f"Cost of an inference and of the reveal protocol{where}",
        heads=("Method",),
        columns=EFFICIENCY_COLUMNS,
        rows=tuple(rows),
        notes=(
            "Milliseconds of another device are not comparable, so only the ratio stands beside "
            "the paper's (RTX 6000 Ada); and parameters, which depend on the widths and on the "
            "width of the features.",
        ),
    )


def published_ratio(paper: PublishedNumbers, row: str) -> PublishedNumber | None:
    """Reveal over inference time of the paper's table; its milliseconds have one decimal.

    >>> from foci.studies.published import published
    >>> published_ratio(published(), "transmil").mean
    91.0
    """
    inference = paper.get(EFFICIENCY_LABEL, "nsclc", row, "inference_ms")
    reveal = paper.get(EFFICIENCY_LABEL, "nsclc", row, "srp_ms")
    if inference is None or reveal is None:
        return None
    ratio = reveal.mean / inference.mean
    digits = 0 if ratio >= 10 else 1
    return PublishedNumber(
        EFFICIENCY_LABEL,
        "nsclc",
        row,
        RATIO.key,
        round(ratio, digits),
        None,
        inference.seeds,
        digits,
    )


def _values(cost: Cost | None) -> dict[str, Value]:
    if cost is None:
        return {column.key: Value.absent("not part of this study") for column in EFFICIENCY_COLUMNS}
    numbers = {
        PARAMETERS.key: cost.parameters / 1e6,
        "inference_ms": cost.inference_ms,
        "srp_ms": cost.srp_ms,
        RATIO.key: cost.ratio,
        "memory_mb": cost.inference_mb,
        "srp_memory_mb": cost.srp_mb,
    }
    return {
        key: Value.absent("cannot be read here") if number is None else Value(number, n=1)
        for key, number in numbers.items()
    }


# tab:faithfulness, tab:faithfulness_xds: loss of the label's probability without the top tiles.


FAITHFULNESS_LABEL, ACROSS = "faithfulness", "faithfulness_xds"
AUC = Column("faithfulness", "Faithfulness AUC", 4, "higher")
DROPS = tuple(Column(f"drop_{k}", f"Δp, K = {k}", 3, "higher") for k in PAPER_COUNTS)
PER_SLIDE = Column("slide_faithfulness", "per slide (ours)", 4, "higher")
LARGE = Column("drop_slides", "slides above 256", 0)
FAITHFULNESS_NOTES = (
    "As in the paper, drops are averaged over slides at each count and the area is divided by 256. "
    "A slide has no drop at K unless it has more than K tiles, so that large counts rest on large "
    "slides, and a cohort without slides above 256 tiles has no such area.",
    "Per slide: the area of every slide up to its own last count, averaged.",
)


def faithfulness_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """Faithfulness AUC and its drops, for every backbone with and without selector."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            place = Place(cohort, backbone)
            for ranking, end, name in ROWS:
                values = {
                    f"drop_{k}": numbers.value(place, Measure("drop", ranking, k=k))
                    for k in PAPER_COUNTS
                }
                for metric in ("faithfulness", "slide_faithfulness"):
                    values[metric] = numbers.value(place, Measure(metric, ranking))
                values["drop_slides"] = numbers.value(
                    place, Measure("drop_slides", ranking, k=PAPER_COUNTS[-1])
                )
                own = cells(values, paper, FAITHFULNESS_LABEL, cohort, backbone + end)
                rows.append(Row((shown(backbone) + name,), own, shown(cohort)))
    return Table(
        label=FAITHFULNESS_LABEL,
        title="Deletion: loss of the label's probability when the top K tiles are removed",
        heads=("Method",),
        columns=(AUC, *DROPS, PER_SLIDE, LARGE),
        rows=tuple(rows),
        notes=FAITHFULNESS_NOTES,
    )


def across_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """Faithfulness AUC of every cohort side by side."""
    rows = []
    for backbone in numbers.backbones:
        for ranking, end, name in ROWS:
            own = {}
            for cohort in numbers.cohorts:
                value = numbers.value(Place(cohort, backbone), Measure("faithfulness", ranking))
                found = cells({"faithfulness": value}, paper, ACROSS, cohort, backbone + end)
                own[cohort] = found["faithfulness"]
            rows.append(Row((shown(backbone) + name,), own))
    return Table(
        label=ACROSS,
        title="Faithfulness AUC across cohorts",
        heads=("Method",),
        columns=tuple(Column(cohort, shown(cohort), 4, "higher") for cohort in numbers.cohorts),
        rows=tuple(rows),
        notes=FAITHFULNESS_NOTES[:1],
    )


# tab:selected_only, tab:selected_only_compact: AUC when a classifier sees only the top tiles.


ADAPTIVE_RECIPE = "paper-adaptive"
FULL = Column("full", "full bag", 3, "higher")
KEPT = (
    Column("random_32", "random 32", 3, "higher"),
    Column("native_32", "native 32", 3, "higher"),
    Column("selector_32", "FOCI 32", 3, "higher"),
    Column("adaptive", "FOCI adaptive", 3, "higher"),
)
SELECTED_ONLY_NOTES = (
    "FOCI adaptive is a selector that was trained with the adaptive budget, read at max(16, 3 % of "
    "N) tiles; FOCI 32 is the main selector. Random: mean over the orders.",
    "A slide with no more than 32 tiles keeps all of them: see the share.",
)


def compact_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """One row per cohort, for the primary backbone."""
    backbone = primary(numbers.backbones)
    rows = tuple(
        Row(
            (shown(cohort),),
            cells(
                selected_values(numbers, cohort, backbone),
                paper,
                "selected_only_compact",
                cohort,
                backbone,
            ),
        )
        for cohort in numbers.cohorts
    )
    return Table(
        label="selected_only_compact",
        title=f"Selected-only AUC of {shown(backbone)}",
        heads=("Dataset",),
        columns=(FULL, *KEPT, SHARE),
        rows=rows,
        notes=SELECTED_ONLY_NOTES,
    )


def selected_table(numbers: Numbers, paper: PublishedNumbers | None) -> Table:
    """Every backbone: AUC with all and with selected tiles, and the differences."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            values = selected_values(numbers, cohort, backbone)
            values |= {
                f"{c.key}_delta": combine(operator.sub, values[c.key], values["full"]) for c in KEPT
            }
            own = cells(values, paper, "selected_only", cohort, backbone)
            rows.append(Row((shown(backbone),), own, shown(cohort)))
    deltas = (Column(f"{c.key}_delta", f"Δ {c.head}", 3, "higher", signed=True) for c in KEPT)
    return Table(
        label="selected_only",
        title="Selected-only AUC of every backbone, and its difference to the full bag",
        heads=("Predictor",),
        columns=(FULL, *KEPT, *deltas, SHARE),
        rows=tuple(rows),
        notes=SELECTED_ONLY_NOTES,
    )


def sweep_table(numbers: Numbers, paper: PublishedNumbers | None, counts: Sequence[int]) -> Table:
    """AUC with the first K tiles for several K; selectors trained with K = 32 and adaptive K."""
    rows = []
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            for name, place, ranking in _orders(cohort, backbone):
                values = {
                    f"k{k}": numbers.value(place, Measure("selected_auc", ranking, k=k))
                    for k in counts
                }
                if place.variant != "main" and values[f"k{counts[0]}"].n == 0:
                    continue
                own = cells(values, None, "selected_only", cohort, backbone)
                if paper is not None and place.variant == ADAPTIVE_RECIPE and 16 in counts:
                    printed = {"adaptive_k16": values["k16"]}
                    found = cells(printed, paper, "selected_only", cohort, backbone)
                    own["k16"] = found["adaptive_k16"]
                rows.append(Row((shown(backbone) + name,), own, shown(cohort)))
    return Table(
        label="selected_only_k",
        title="Selected-only AUC by the number of tiles kept",
        heads=("Method",),
        columns=tuple(Column(f"k{k}", f"K = {k}", 3, "higher") for k in counts),
        rows=tuple(rows),
        notes=("The paper gives K = 16 on BRCA in its text, with the adaptive selector.",),
    )


def selected_values(numbers: Numbers, cohort: str, backbone: str) -> dict[str, Value]:
    """AUC with all tiles, with 32 under three rankings, and of the adaptive selector."""
    place = Place(cohort, backbone)
    kept = {
        f"{ranking}_32": numbers.value(place, Measure("selected_auc", ranking, k=32))
        for ranking in (RANDOM, NATIVE, SELECTOR)
    }
    adaptive = Place(cohort, backbone, ADAPTIVE_RECIPE)
    return {
        "full": numbers.value(place, Measure("auc")),
        **kept,
        "adaptive": numbers.value(adaptive, Measure("selected_auc", SELECTOR)),
        "share_32": numbers.value(place, Measure("share_32")),
    }


def _orders(cohort: str, backbone: str) -> list[tuple[str, Place, str]]:
    main = Place(cohort, backbone)
    return [
        ("", main, NATIVE),
        (f" {WITH}", main, SELECTOR),
        (f" {WITH}, adaptive", Place(cohort, backbone, ADAPTIVE_RECIPE), SELECTOR),
        (" random order", main, RANDOM),
    ]
