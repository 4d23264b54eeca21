"""The tables of the paper, each from the numbers of a study, in the order of the paper.

A row is named as in the published numbers: a backbone, with ``+foci`` where a selector ranks its
tiles.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from foci.audits.settings import EVIDENCE, NATIVE, RANDOM, SELECTOR
from foci.metrics import shi
from foci.metrics.deletion import PAPER_COUNTS
from foci.studies.plan import MAIN, N_CAP
from foci.studies.read import (
    ABSENT,
    COHORTS,
    FOCI,
    Measure,
    Place,
    PublishedNumber,
    StudyNumbers,
    Value,
    combine,
    of_means,
)
from foci.studies.study import Study
from foci.studies.table import (
    AUKC,
    MSK,
    PRIMARY,
    RESTRICTED,
    RESTRICTED_NOTE,
    REVEAL,
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

METHODS = (
    (NATIVE, "", ""),
    (SELECTOR, FOCI, f" {WITH}"),
    (RANDOM, "+random", " random order (ours)"),
    (EVIDENCE, "+evidence", " evidence (ours)"),
)
"""Rankings, with how the names of their rows end: in the published numbers, and shown."""

ADAPTIVE = "paper-adaptive"
CONTROL = "freeze-only"


def paper_tables(study: Study, numbers: StudyNumbers) -> Iterator[Table]:
    """All of them, in the order of the paper; one without rows is empty."""
    settings, read = study.settings(study.seeds[0]), study.read
    yield shi_table(numbers)
    yield compact_table(numbers)
    for cohort in numbers.cohorts:
        yield main_table(numbers, cohort)
    for budget in read.budgets:
        if budget < settings.k_max:
            yield budget_table(numbers, budget)
    yield kappa_table(numbers, read.kappas)
    yield cap_table(numbers, study.n_cap)
    yield adaptive_table(numbers)
    yield selected_table(numbers)
    yield sweep_table(numbers, read.selected_k)
    yield gate_table(numbers, settings.recipe)
    yield loss_table(numbers, settings.recipe)
    yield faithfulness_table(numbers)
    yield across_table(numbers)
    yield predicted_table(numbers)
    yield efficiency_table(numbers)


def _deltas(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Columns of the differences to a base."""
    return tuple(
        Column(f"{c.key}_delta", f"Δ {c.head}", c.digits, c.better, signed=True) for c in columns
    )


def _differences(
    columns: Sequence[Column], own: dict[str, Value], base: Callable[[str], Value]
) -> dict[str, Value]:
    """Values of :func:`_deltas`, seed by seed."""
    return {f"{c.key}_delta": combine(operator.sub, own[c.key], base(c.key)) for c in columns}


def _reveal_row(
    numbers: StudyNumbers,
    label: str,
    place: Place,
    ranking: str,
    names: tuple[str, str],
    row: str,
    kappa: float | None = None,
) -> Row:
    """MSK_cond, Reach, AUKC and restricted mean; ``row`` is the paper's, of its one backbone."""
    values = srp_values(numbers, place, ranking, kappa=kappa)
    printed = row if place.backbone == PRIMARY else ""
    own = cells(numbers, values, label, place.cohort, printed)
    return Row(names, own, shown(place.cohort))


def _method_rows(
    numbers: StudyNumbers,
    label: str,
    values: Callable[[Place, str], dict[str, Value]],
    methods: Sequence[tuple[str, str, str]] = METHODS[:3],
) -> list[Row]:
    """A row for every backbone and ranking, grouped by cohort."""
    rows = []
    for place, (ranking, end, name) in product(numbers.places, methods):
        row = place.backbone + end
        own = cells(numbers, values(place, ranking), label, place.cohort, row)
        rows.append(Row((shown(place.backbone) + name,), own, shown(place.cohort)))
    return rows


# Reveal results


def shi_of(numbers: StudyNumbers, place: Place, base: str = NATIVE) -> Value:
    """SHI of the selector at a place, against another ranking, on means over seeds."""
    values = (numbers.value(place, Measure("msk_cond", name)) for name in (base, SELECTOR))
    return of_means(shi, *values)


def shi_table(numbers: StudyNumbers) -> Table:
    """tab:shi, one row per backbone, grouped by family; SHI of every cohort and their mean."""
    rows = []
    families = {name: family.partition("/") for name, family in numbers.backbones.items()}
    groups = list(dict.fromkeys(group for group, _, _ in families.values()))
    for backbone, (group, _, kind) in sorted(
        families.items(), key=lambda item: groups.index(item[1][0])
    ):
        own: dict[str, Cell] = {}
        for base, end in ((NATIVE, ""), (RANDOM, "_random")):
            each = {c: shi_of(numbers, Place(c, backbone), base) for c in numbers.cohorts}
            each["mean"] = _over_cohorts(each)
            for cohort, value in each.items():
                # the paper's mean is over three cohorts: it stands beside a mean of the same three
                comparable = cohort != "mean" or set(numbers.cohorts) == set(COHORTS)
                printed = numbers.printed("shi", cohort, backbone, "shi")
                beside = printed if base == NATIVE and comparable else None
                own[f"{cohort}{end}"] = Cell(value, beside)
        rows.append(Row((kind, shown(backbone)), own, group))
    columns = [
        Column(f"{name}{end}", shown(name) + words, 3, "higher", signed=True)
        for end, words in (("", ""), ("_random", ", against random"))
        for name in (*numbers.cohorts, "mean")
    ]
    return Table(
        label="shi",
        title="Selection Headroom Index per backbone and cohort",
        heads=("Family", "Backbone"),
        columns=columns,
        rows=rows,
        notes=(
            "SHI is the relative saving of MSK_cond, (base - FOCI) / base, on means over seeds; "
            "the spread is that of SHI seed by seed. Near a base of one tile the ratio explodes: "
            "read it beside the counts.",
            "Against random, the base is the mean over random orders: a selector can beat a "
            "backbone's own ranking and lose to chance.",
        ),
    )


def _over_cohorts(each: dict[str, Value]) -> Value:
    """Mean of a value over cohorts; absent where a cohort has none."""
    absent = [name for name, value in each.items() if value.mean is None]
    if absent:
        return Value.absent(f"no value on {', '.join(map(shown, absent))}")
    means = [value.mean for value in each.values() if value.mean is not None]
    return Value(sum(means) / len(means), None, min(value.n for value in each.values()))


def main_table(numbers: StudyNumbers, cohort: str) -> Table:
    """tab:main, every backbone under its own ranking and under others, one table per cohort."""
    ours = (
        Column("decided_k", "K, decided slides", 2, "lower"),
        Column("decisive_k", "decisive K (median)", 1, "lower"),
        Column("decisive_share", "decisive sets (%)", 1, "higher"),
        Column("efficiency", "efficiency", 2, "higher"),
    )
    native, selector, random, evidence = METHODS
    rows = []
    for backbone in numbers.backbones:
        place = Place(cohort, backbone)
        base = srp_values(numbers, place, NATIVE)
        for ranking, end, name in (native, selector, evidence, random):
            values = srp_values(numbers, place, ranking)
            if ranking == EVIDENCE and values["aukc"].mean is None:
                continue
            if ranking != NATIVE:
                values |= _differences(SRP, values, base.__getitem__)
            for column in ours:
                measure = Measure(column.key, ranking, "prediction")
                values[column.key] = numbers.value(place, measure)
            own = cells(numbers, values, "main", cohort, backbone + end)
            rows.append(Row((shown(backbone) + name,), own))
    return Table(
        label=f"main_{cohort}",
        title=f"Reveal results on {shown(cohort)}: each backbone's own ranking, and others",
        columns=(*SRP, *_deltas(SRP), RESTRICTED, *ours),
        rows=rows,
        notes=(
            "MSK_cond, Reach and AUKC follow the label, as in the paper; differences are against "
            "the backbone's own ranking, seed by seed.",
            RESTRICTED_NOTE,
            "K over decided slides and decisive K follow the model's prediction, over slides of "
            "which the model is at least kappa sure with all tiles; decisive K is the median count "
            "of tiles that suffice and without which the decision flips. Random orders: mean over "
            "the orders. Efficiency is the proven minimum over decisive K, where one is known.",
        ),
    )


def budget_table(numbers: StudyNumbers, budget: int) -> Table:
    """tab:kmax32, reveal numbers within ``budget`` tiles, and which share of a bag it is."""

    def values(place: Place, ranking: str) -> dict[str, Value]:
        found = srp_values(numbers, place, ranking, k_max=budget)
        return {**found, "share_32": numbers.value(place, Measure("share_32"))}

    label = f"kmax{budget}"
    return Table(
        label=label,
        title=f"At most {budget} tiles revealed, kappa 0.9, label view",
        columns=(*REVEAL, SHARE),
        rows=_method_rows(numbers, label, values),
        notes=(
            RESTRICTED_NOTE,
            "Where 32 tiles are nearly the whole bag, this table says little about compactness: "
            "see the share.",
        ),
    )


def kappa_table(numbers: StudyNumbers, kappas: Sequence[float]) -> Table:
    """tab:kappa_sensitivity, the curves of the primary backbone read at other confidences."""
    label, backbone = "kappa_sensitivity", primary(numbers.backbones)
    rows = []
    for cohort, with_foci, kappa in product(numbers.cohorts, (True, False), kappas):
        ranking, name = (SELECTOR, f" {WITH}") if with_foci else (NATIVE, "")
        names, row = (shown(backbone) + name, f"{kappa:g}"), f"{kappa:g}" if with_foci else ""
        place = Place(cohort, backbone)
        rows.append(_reveal_row(numbers, label, place, ranking, names, row, kappa))
    return Table(
        label=label,
        title="Sensitivity to the operating confidence κ",
        heads=("Method", "κ"),
        columns=REVEAL,
        rows=rows,
        notes=("AUKC does not depend on kappa. MSK_cond has other slides at every kappa.",),
    )


def cap_table(numbers: StudyNumbers, n_cap: int) -> Table:
    """tab:ncap_sensitivity, other tile caps beside the study's own, where they were swept."""
    label = "ncap_sensitivity"
    rows = []
    for main in numbers.places:
        swept = [place for place in numbers.variants(main) if place.variant == N_CAP]
        places = {n_cap: main, **{place.n_cap or 0: place for place in swept}} if swept else {}
        for cap in sorted(places):
            names = (f"{shown(main.backbone)} {WITH}", str(cap))
            rows.append(_reveal_row(numbers, label, places[cap], SELECTOR, names, str(cap)))
    return Table(
        label=label,
        title="Sensitivity to the number of tiles kept before the audit (n_cap)",
        heads=("Method", "n_cap"),
        columns=REVEAL,
        rows=rows,
        notes=("A bag with fewer tiles than n_cap is the same at every larger cap.",),
    )


def predicted_table(numbers: StudyNumbers) -> Table:
    """tab:predicted_class_srp, reveal numbers that follow the model's own prediction."""

    def values(place: Place, ranking: str) -> dict[str, Value]:
        found = {
            metric: numbers.value(place, Measure(metric, ranking, "prediction"))
            for metric in ("reach", "msk_cond", "aukc")
        }
        return {**found, "reach": combine(lambda percent: percent / 100, found["reach"])}

    label = "predicted_class_srp"
    return Table(
        label=label,
        title="Reveal results for the predicted class: is the model's own decision recovered?",
        columns=(Column("reach", "Reach (share)", 3, "higher"), MSK, AUKC),
        rows=_method_rows(numbers, label, values, METHODS[:2]),
        notes=("Correctness is not asked for here, so that Reach is higher than in label view.",),
    )


# Ablations of the selector


def gate_table(numbers: StudyNumbers, recipe: str) -> Table:
    """tab:ablation, native ranking, control without losses, soft gate, and the main recipe."""
    label, variants = "ablation", (CONTROL, "paper-soft")
    return Table(
        label=label,
        title="Gate of the selector",
        heads=("Backbone", "Method"),
        columns=REVEAL,
        rows=_recipe_rows(numbers, label, recipe, variants.__contains__, native=True),
        notes=(RESTRICTED_NOTE,),
    )


def loss_table(numbers: StudyNumbers, recipe: str) -> Table:
    """tab:lambda_ablation, each loss of the main recipe left out or weighted otherwise."""
    label = "lambda_ablation"

    def chosen(variant: str) -> bool:
        return variant == CONTROL or variant.startswith(("no-", "lambda."))

    return Table(
        label=label,
        title="Losses of the selector",
        heads=("Backbone", "Method"),
        columns=REVEAL,
        rows=_recipe_rows(numbers, label, recipe, chosen, native=False),
        notes=(
            RESTRICTED_NOTE,
            "no-x sets the weight of loss x to 0. The paper's freeze-only row has two seeds.",
        ),
    )


def _recipe_rows(
    numbers: StudyNumbers, label: str, recipe: str, chosen: Callable[[str], bool], *, native: bool
) -> list[Row]:
    """The chosen variants of every backbone that has some, then its main recipe."""
    rows = []
    for main in numbers.places:
        variants = [p.variant for p in numbers.variants(main) if chosen(p.variant)]
        if not variants:
            continue
        listed = [(main.backbone, MAIN, NATIVE)] if native else []
        listed += [(v, v, SELECTOR) for v in variants] + [(recipe, MAIN, SELECTOR)]
        for row, variant, ranking in listed:
            names = (shown(main.backbone), "own ranking" if ranking == NATIVE else row)
            place = Place(main.cohort, main.backbone, variant)
            rows.append(_reveal_row(numbers, label, place, ranking, names, row))
    return rows


def adaptive_table(numbers: StudyNumbers) -> Table:
    """tab:adaptive_k_settings; a single seed stands beside a single seed."""
    label = "adaptive_k_settings"
    rows = []
    for main in numbers.places:
        for variant, (alpha, k_min) in sorted(numbers.adaptive.items(), key=lambda item: item[1]):
            place = Place(main.cohort, main.backbone, variant)
            scores = numbers.validation.get(place)
            if scores is None:
                continue
            printed = None
            if k_min == 16 and main.backbone == PRIMARY:
                column = "val_aukc" if len(scores) > 1 else "val_aukc_seed42"
                printed = numbers.printed(label, main.cohort, f"{alpha:g}", column)
            names = (shown(main.cohort), shown(main.backbone), f"{alpha:g}", str(k_min))
            short = numbers.short_validation.get(place, {})
            measured = {"val_aukc": scores, "val_aukc_32": short}
            own = {key: Cell(numbers.over(found), printed) for key, found in measured.items()}
            rows.append(Row(names, own))
    return Table(
        label=label,
        title="Adaptive budget max(K_min, alpha N) of the selector's training",
        heads=("Dataset", "Backbone", "alpha", "K_min"),
        columns=(
            Column("val_aukc", "validation AUKC, to 256", 3, "higher"),
            Column("val_aukc_32", "to 32", 3, "higher"),
        ),
        rows=rows,
        notes=(
            "Score of the epoch that was kept, on the validation slides. It is the area up to 256 "
            "tiles over a grid of counts, and the same up to 32. The paper does not say up to "
            "which count its own runs, so its number stands beside both.",
        ),
    )


# Selected-only AUC: a classifier that sees only the top tiles


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


def _selected_values(numbers: StudyNumbers, place: Place) -> dict[str, Value]:
    """AUC with all tiles, with 32 under three rankings, and of the adaptive selector."""
    values = {"full": numbers.value(place, Measure("auc"))}
    for ranking in (RANDOM, NATIVE, SELECTOR):
        values[f"{ranking}_32"] = numbers.value(place, Measure("selected_auc", ranking, k=32))
    adaptive = Place(place.cohort, place.backbone, ADAPTIVE)
    values["adaptive"] = numbers.value(adaptive, Measure("selected_auc", SELECTOR))
    values["share_32"] = numbers.value(place, Measure("share_32"))
    return values


def compact_table(numbers: StudyNumbers) -> Table:
    """tab:selected_only_compact, one row per cohort, for the primary backbone."""
    label, backbone = "selected_only_compact", primary(numbers.backbones)
    values = {
        cohort: _selected_values(numbers, Place(cohort, backbone)) for cohort in numbers.cohorts
    }
    return Table(
        label=label,
        title=f"Selected-only AUC of {shown(backbone)}",
        heads=("Dataset",),
        columns=(FULL, *KEPT, SHARE),
        rows=[
            Row((shown(cohort),), cells(numbers, own, label, cohort, backbone))
            for cohort, own in values.items()
        ],
        notes=SELECTED_ONLY_NOTES,
    )


def selected_table(numbers: StudyNumbers) -> Table:
    """tab:selected_only, every backbone, with the differences to the full bag."""

    def values(place: Place, _: str) -> dict[str, Value]:
        found = _selected_values(numbers, place)
        return {**found, **_differences(KEPT, found, lambda _: found["full"])}

    return Table(
        label="selected_only",
        title="Selected-only AUC of every backbone, and its difference to the full bag",
        heads=("Predictor",),
        columns=(FULL, *KEPT, *_deltas(KEPT), SHARE),
        rows=_method_rows(numbers, "selected_only", values, METHODS[:1]),
        notes=SELECTED_ONLY_NOTES,
    )


def sweep_table(numbers: StudyNumbers, counts: Sequence[int]) -> Table:
    """AUC with the first K tiles for several K; selectors trained with K = 32 and adaptive K."""
    rows = []
    for main in numbers.places:
        cohort, backbone = main.cohort, main.backbone
        adaptive = Place(cohort, backbone, ADAPTIVE)
        for name, place, ranking in (
            ("", main, NATIVE),
            (f" {WITH}", main, SELECTOR),
            (f" {WITH}, adaptive", adaptive, SELECTOR),
            (" random order", main, RANDOM),
        ):
            values = {
                f"k{k}": numbers.value(place, Measure("selected_auc", ranking, k=k)) for k in counts
            }
            if place == adaptive and values[f"k{counts[0]}"].n == 0:
                continue
            own = {key: Cell(value) for key, value in values.items()}
            if place == adaptive and 16 in counts:
                printed = numbers.printed("selected_only", cohort, backbone, "adaptive_k16")
                own["k16"] = Cell(values["k16"], printed)
            rows.append(Row((shown(backbone) + name,), own, shown(cohort)))
    return Table(
        label="selected_only_k",
        title="Selected-only AUC by the number of tiles kept",
        columns=[Column(f"k{k}", f"K = {k}", 3, "higher") for k in counts],
        rows=rows,
        notes=("The paper gives K = 16 on BRCA in its text, with the adaptive selector.",),
    )


# Deletion: loss of the label's probability without the top tiles


FAITHFULNESS_NOTES = (
    "As in the paper, drops are averaged over slides at each count and the area is divided by 256. "
    "A slide has no drop at K unless it has more than K tiles, so that large counts rest on large "
    "slides, and a cohort without slides above 256 tiles has no such area.",
    "Per slide: the area of every slide up to its own last count, averaged.",
)


def faithfulness_table(numbers: StudyNumbers) -> Table:
    """tab:faithfulness, Faithfulness AUC and its drops, with and without selector."""

    def values(place: Place, ranking: str) -> dict[str, Value]:
        measures = {f"drop_{k}": Measure("drop", ranking, k=k) for k in PAPER_COUNTS}
        for metric in ("faithfulness", "slide_faithfulness"):
            measures[metric] = Measure(metric, ranking)
        measures["drop_slides"] = Measure("drop_slides", ranking, k=PAPER_COUNTS[-1])
        return {name: numbers.value(place, measure) for name, measure in measures.items()}

    return Table(
        label="faithfulness",
        title="Deletion: loss of the label's probability when the top K tiles are removed",
        columns=(
            Column("faithfulness", "Faithfulness AUC", 4, "higher"),
            *(Column(f"drop_{k}", f"Δp, K = {k}", 3, "higher") for k in PAPER_COUNTS),
            Column("slide_faithfulness", "per slide (ours)", 4, "higher"),
            Column("drop_slides", "slides above 256", 0),
        ),
        rows=_method_rows(numbers, "faithfulness", values),
        notes=FAITHFULNESS_NOTES,
    )


def across_table(numbers: StudyNumbers) -> Table:
    """tab:faithfulness_xds, Faithfulness AUC of every cohort side by side."""
    label = "faithfulness_xds"
    rows = []
    for backbone, (ranking, end, name) in product(numbers.backbones, METHODS[:3]):
        own = {}
        for cohort in numbers.cohorts:
            value = numbers.value(Place(cohort, backbone), Measure("faithfulness", ranking))
            printed = numbers.printed(label, cohort, backbone + end, "faithfulness")
            own[cohort] = Cell(value, printed)
        rows.append(Row((shown(backbone) + name,), own))
    return Table(
        label=label,
        title="Faithfulness AUC across cohorts",
        columns=[Column(cohort, shown(cohort), 4, "higher") for cohort in numbers.cohorts],
        rows=rows,
        notes=FAITHFULNESS_NOTES[:1],
    )


def efficiency_table(numbers: StudyNumbers) -> Table:
    """tab:efficiency, with and without selector; only ratios stand beside the paper's."""
    columns = (
        Column("parameters_m", "parameters (M)", 2),
        Column("inference_ms", "inference (ms)", 2, "lower"),
        Column("srp_ms", "reveal (ms)", 1, "lower"),
        Column("srp_ratio", "reveal / inference", 1, "lower"),
        Column("memory_mb", "peak memory (MB)", 0, "lower"),
        Column("srp_memory_mb", "peak memory, reveal (MB)", 0, "lower"),
    )
    rows, devices = [], set()
    for backbone in numbers.backbones:
        cost = numbers.costs.get(backbone, "not measured in this study")
        if isinstance(cost, str):
            gap = {column.key: Cell(Value.absent(cost)) for column in columns}
            rows.append(Row((shown(backbone),), gap))
            continue
        devices.add(f"{cost.device} ({cost.machine}, {counted(cost.threads, 'thread')})")
        for own, (_, end, name) in zip((cost.native, cost.selector), METHODS[:2], strict=True):
            printed = _printed_costs(numbers, backbone + end)
            values = [Value.absent(ABSENT)] * len(columns)
            if own is not None:
                times = (own.inference_ms, own.srp_ms, own.ratio)
                found = (own.parameters / 1e6, *times, own.inference_mb, own.srp_mb)
                unknown = Value.absent("cannot be read here")
                values = [unknown if number is None else Value(number, n=1) for number in found]
            row = {
                column.key: Cell(value, printed.get(column.key))
                for column, value in zip(columns, values, strict=True)
            }
            rows.append(Row((shown(backbone) + name,), row))
    where = f" on {', '.join(sorted(devices))}" if devices else ""
    return Table(
        label="efficiency",
        title=f"Cost of an inference and of the reveal protocol{where}",
        columns=columns,
        rows=rows,
        notes=(
            "Milliseconds of another device are not comparable, so only the ratio stands beside "
            "the paper's (RTX 6000 Ada); and parameters, which depend on the widths and on the "
            "width of the features.",
        ),
    )


def _printed_costs(numbers: StudyNumbers, row: str) -> dict[str, PublishedNumber | None]:
    """Parameters, and reveal over inference time: the paper's milliseconds have one decimal."""
    parameters, inference, reveal = (
        numbers.printed("efficiency", "nsclc", row, column)
        for column in ("parameters_m", "inference_ms", "srp_ms")
    )
    printed = {"parameters_m": parameters}
    if inference is not None and reveal is not None:
        ratio = reveal.mean / inference.mean
        digits = 0 if ratio >= 10 else 1
        rounded = round(ratio, digits)
        printed["srp_ratio"] = PublishedNumber(rounded, None, inference.seeds, digits)
    return printed
