"""Put the tables of docs/appendix onto the pages that show them.

``python -m tools.results`` writes what stands between ``<!-- table: NAME -->`` and ``<!-- end -->``
on the pages anew from the files; ``tests/test_results.py`` fails where a page and its file differ.
The files come from ``benchmarks/``; each says which program writes it.
"""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("results.md", "proofs.md", "statistics.md")
PLACE = re.compile(r"(?<=<!-- table: )([\w-]+)( -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)
Rows = list[dict[str, str]]


def page_of(text: str) -> str:
    """A page with its tables written anew.

    Raises:
        KeyError: If the page names a table that there is not.
    """
    return PLACE.sub(lambda found: f"{found[1]}{found[2]}\n{TABLES[found[1]]()}\n", text)


def rows_of(name: str) -> Rows:
    """The rows of a file of the appendix."""
    with (DOCS / "appendix" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    first, *others = (f"| {' | '.join(line)} |\n" for line in (head, *rows))
    return "".join([first, "|" + "---|" * len(head) + "\n", *others])


def by_cohort(rows: Rows, cell: Callable[[Rows], str]) -> str:
    """One row per classifier, one column per cohort."""
    cohorts = list(dict.fromkeys(row["cohort"] for row in rows))
    found = []
    for name in dict.fromkeys(row["classifier"] for row in rows):
        own = [row for row in rows if row["classifier"] == name]
        cells = [cell([row for row in own if row["cohort"] == cohort]) for cohort in cohorts]
        found.append([name, *cells])
    return markdown(["classifier", *cohorts], found)


def tiles_until_sure() -> str:
    """MSK_cond of every ranking of the study, profile paper."""
    order = ("native", "selector", "evidence", "random")

    def cell(rows: Rows) -> str:
        counts = {row["ranking"]: row["MSK_cond"] for row in rows}
        means = (re.sub(r" ± [\d.]+", "", counts[ranking]) for ranking in order)
        return ", ".join(means)

    return by_cohort(rows_of("study-paper.csv"), cell)


def before_and_now() -> str:
    """Answers under the earlier rules and now, where they differ."""
    rows = rows_of("answers.csv")
    now = {
        (row["cohort"], row["classifier"]): row["can I believe the map?"]
        for row in rows_of("study-foci.csv")
    }
    found = []
    for cohort, classifier in dict.fromkeys((row["cohort"], row["classifier"]) for row in rows):
        own = [row for row in rows if (row["cohort"], row["classifier"]) == (cohort, classifier)]
        before = own[0]["earlier, all seeds"]
        if before != now[cohort, classifier]:
            each = "; ".join(row["can I believe the map?"] for row in own)
            pvalues = ", ".join(row["p of content-free maps"] or "-" for row in own)
            found.append([cohort, classifier, before, each, pvalues])
    return markdown(["cohort", "classifier", "before, all seeds", "now, by seed", "p"], found)


def coverage() -> str:
    """The least coverage of an interval, and the most false answers, by number of patients."""
    rows = rows_of("coverage.csv")
    found = []
    for patients in dict.fromkeys(row["patients"] for row in rows):
        own = [row for row in rows if row["patients"] == patients]
        least = min(value for row in own for name, value in row.items() if name.startswith("D = "))
        false = (max((row[name] for row in own), key=lambda share: float(share.rstrip(" %")))
                 for name in ("better", "worse"))  # fmt: skip
        found.append([patients, least, *false])
    return markdown(["patients", "least coverage", "false `better`", "false `worse`"], found)


def efficiency() -> str:
    """Distances from the proven minimum: native, evidence, random order."""

    def cell(rows: Rows) -> str:
        seeds = [re.sub(r".*\(", "(", row["classifier"]) for row in rows]
        near = [", ".join(row[name] for name in ("native", "evidence", "random")) for row in rows]
        return "; ".join(f"{one} {of}" for one, of in zip(near, seeds, strict=True)) or "-"

    rows = [{**row, "classifier": row["classifier (seeds)"]} for row in rows_of("efficiency.csv")]
    kinds = list(dict.fromkeys(re.sub(r" \(\d\)", "", row["classifier"]) for row in rows))
    cohorts = list(dict.fromkeys(row["cohort"] for row in rows))
    found = []
    for kind in kinds:
        own = [row for row in rows if row["classifier"].startswith(f"{kind} (")]
        by = [[row for row in own if row["cohort"] == cohort] for cohort in cohorts]
        found.append([kind, own[0]["theorem"], *map(cell, by)])
    return markdown(["classifier", "theorem", *cohorts], found)


# Sentences of the results page: numbers from the files, words that these numbers bear out

LUNG, BREAST, BAGS = "TCGA lung", "TCGA breast", "LC25000 bags"
IN_STUDY = {LUNG: "NSCLC", BREAST: "BRCA", BAGS: "lc25000"}
"""Cohorts by their name in the files, with that in the tables of the study."""

IN_RELEVANCE = {"embedded": "embedded", "lc25000": "bags", "lung": "lung"}
IN_PAGE = {study.lower(): name for name, study in IN_STUDY.items()}

NAMES = ("TransMIL", "ACMIL", "ABMIL", "CLAM-SB", "AttriMIL", "ASMIL", "MHIM-MIL")
RANKINGS = ("native", "evidence", "selector", "random")


def holds(fact: bool, words: str) -> str:
    """The words, if the numbers still bear them out.

    Raises:
        ValueError: If they do not: the page has to say something else.
    """
    if not fact:
        raise ValueError(f"the files no longer bear out: {words}")
    return words


def number(text: str) -> float:
    """The mean of a cell such as ``2.41 ± 0.58`` or ``85.3 (2)``; NaN where there is none."""
    found = re.match(r"[-+]?[\d.]+", text)
    return float(found[0]) if found else math.nan


def claimed(table: str, row: str, column: str, key: str = "mean") -> float:
    """A number of a table of the study: its mean, or ``std``, ``n``, ``paper_mean``."""
    for line in rows_of("study-claims.csv"):
        if (line["table"], line["row"], line["column"]) == (table, row, column):
            return float(line[key] or "nan")
    raise KeyError((table, row, column))


def measured(column: str, *cohorts: str) -> dict[tuple[str, str], dict[str, float]]:
    """A column of profile paper by (cohort, classifier), then by ranking."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows_of("study-paper.csv"):
        if row["cohort"] in (cohorts or IN_STUDY):
            own = found.setdefault((row["cohort"], row["classifier"]), {})
            own[row["ranking"]] = number(row[column])
    return found


def saving(classifier: str, cohort: str, key: str = "mean") -> float:
    """SHI of a classifier's selector."""
    names = {row["row"] for row in rows_of("study-claims.csv") if row["table"] == "shi"}
    (name,) = (name for name in names if name.split()[-1] == classifier)
    return claimed("shi", name, IN_STUDY[cohort].lower(), key)


def savings(classifier: str, *cohorts: str) -> str:
    """SHI on some cohorts, with its spread over seeds."""
    pairs = ((saving(classifier, c), saving(classifier, c, "std")) for c in cohorts or IN_STUDY)
    return ", ".join(f"{mean:+.2f} ± {std:.2f}" for mean, std in pairs)


def claims() -> str:
    """The paper's claims one by one."""
    counts, sure = measured("MSK_cond"), measured("K, decided slides")
    bags, lung, breast = (counts[cohort, "TransMIL"] for cohort in (BAGS, LUNG, BREAST))
    decided, means = sure[BAGS, "TransMIL"], {name: mean_saving(name) for name in NAMES}
    test = partial(claimed, "tests")
    rows = [
        (
            "TransMIL's own ranking has headroom: SHI +0.56 (NSCLC), +0.32 (BRCA)",
            f"{savings('TransMIL', BAGS)} on the LC25000 bags ({bags['selector']:.1f} tiles "
            f"instead of {bags['native']:.0f}; {decided['selector']:.1f} instead of "
            f"{decided['native']:.0f} on sure slides). {savings('TransMIL', LUNG, BREAST)} on "
            f"TCGA, where its own ranking needs {lung['native']:.1f} and {breast['native']:.1f} "
            f"regions and random order {lung['random']:.1f} and {breast['random']:.1f}",
            holds(saving("TransMIL", BAGS) > 0.5, "agrees where there is something to save"),
        ),
        (
            "its gain over (cohort, seed) pairs: p = 0.008",
            f"p = {test('TransMIL', 'msk_pvalue'):.2f}, {test('TransMIL', 'msk_pairs'):.0f} "
            f"pairs, median gain {-test('TransMIL', 'msk_median_difference'):.1f} tiles",
            holds(test("TransMIL", "msk_pvalue") > 0.05, "no"),
        ),
        (
            "ACMIL has the highest mean SHI (+0.465)",
            f"{savings('ACMIL')}, rank {rank(means, 'ACMIL')} of {len(means)} by their mean",
            holds(rank(means, "ACMIL") > 1, "no"),
        ),
        (
            "attention pooling is saturated: little or nothing to gain",
            f"ABMIL {savings('ABMIL')}, CLAM-SB {savings('CLAM-SB')}. Over "
            f"{test('ABMIL', 'msk_pairs'):.0f} pairs ABMIL's selector needs *more* tiles, "
            f"p = {test('ABMIL', 'msk_pvalue'):.3f}",
            holds(max(means["ABMIL"], means["CLAM-SB"]) < 0.2, "agrees"),
        ),
        (
            "hard selection conflicts with a selector (ASMIL -2.06 on NSCLC, MHIM-MIL negative)",
            f"ASMIL {savings('ASMIL')}; MHIM-MIL {savings('MHIM-MIL')}",
            holds(all(saving("ASMIL", cohort) < 0 for cohort in IN_STUDY), "agrees for ASMIL"),
        ),
        hypothesis("H1: AUC does not tell SHI", "H1 AUC and SHI", lambda r: abs(r) < 0.4, "agrees"),
        hypothesis(
            "H2: a long ranking has headroom", "H2 native MSK and SHI", lambda r: r > 0.4,
            "agrees; partly built in, SHI contains MSK",
        ),
        complementary(),
        hard_against_soft(),
        losses(),
        (
            "training classifier and selector together costs more than 15 points of AUC in two "
            "epochs",
            f"{claimed('joint', 'NSCLC TransMIL', 'points'):.1f} points (one seed)",
            holds(
                0 < claimed("joint", "NSCLC TransMIL", "points") < 15, "in direction, not in size"
            ),
        ),
        unchanged(),
        costs(),
    ]  # fmt: skip
    return markdown(["the paper", "here", ""], rows)


def mean_saving(classifier: str) -> float:
    """SHI, mean over the cohorts."""
    return statistics.mean(saving(classifier, cohort) for cohort in IN_STUDY)


def rank(values: Mapping[str, float], name: str) -> int:
    """Place of a value, the largest first."""
    return sorted(values.values(), reverse=True).index(values[name]) + 1


def hypothesis(
    says: str, row: str, fact: Callable[[float], bool], verdict: str
) -> tuple[str, str, str]:
    """A rank correlation over (classifier, cohort) pairs, beside the paper's where it has one."""
    rho, n = claimed("hypotheses", row, "number"), claimed("hypotheses", row, "pairs")
    paper = claimed("hypotheses", row, "number", "paper_mean")
    beside = "" if math.isnan(paper) else f" (from the paper's own tables {paper:+.2f})"
    found = f"rank correlation {rho:+.2f} over {n:.0f} pairs{beside}"
    return says, found, holds(fact(rho), verdict)


def complementary() -> tuple[str, str, str]:
    """H3: rank correlations of the three gains."""
    gains = ("SHI", "deletion gain", "selected-only gain")
    pairs = (f"{a} and {b}" for a, b in combinations(gains, 2))
    found = [claimed("hypotheses", f"H3 {pair}", "number") for pair in pairs]
    return (
        "H3: reveal, deletion and selected-only AUC are complementary",
        f"rank correlations {', '.join(f'{rho:+.2f}' for rho in found)}",
        holds(all(0 < rho < 0.7 for rho in found), "related, not interchangeable"),
    )


def hard_against_soft() -> tuple[str, str, str]:
    """H4 on the one classifier and cohort that have both gates."""
    rows = [
        row for row in rows_of("study-claims.csv")
        if row["row"].startswith("H4 ") and row["column"] == "number"
    ]  # fmt: skip
    (tiles,) = (row for row in rows if "MSK_cond" in row["row"])
    (area,) = (row for row in rows if "AUKC" in row["row"])
    more = float(tiles["mean"])
    return (
        "H4: hard (STE) selection aligns counts better than soft",
        f"TransMIL on lung: STE needs {more:.2f} ± {float(tiles['std']):.2f} tiles more than Soft, "
        f"AUKC {float(area['mean']):+.3f} ± {float(area['std']):.3f}",
        holds(more > 0, "no"),
    )


def losses() -> tuple[str, str, str]:
    """Reach without each of the losses."""
    reach = {
        line["row"].split()[-1]: float(line["mean"]) for line in rows_of("study-claims.csv")
        if (line["table"], line["column"]) == ("lambda_ablation", "reach")
    }  # fmt: skip
    without = [own for name, own in reach.items() if name.startswith("no-")]
    return (
        "leaving out one loss collapses Reach to 20 to 34 % (NSCLC, TransMIL)",
        f"Reach is {min(without):.1f} % at least, whichever is left out (one seed), and "
        f"{reach['paper-ste']:.1f} % with all. Without coordinates contiguity is 0, and "
        "`no-contig` is the full recipe",
        holds(min(without) > 80, "cannot be seen here"),
    )


def unchanged() -> tuple[str, str, str]:
    """Whether fitting selectors changed a classifier."""
    apart = [
        abs(float(line["mean"])) for line in rows_of("study-claims.csv")
        if line["table"] == "preservation" and line["column"] in ("difference", "largest")
    ]  # fmt: skip
    return (
        "the frozen classifier does not change",
        "the same AUC and the same probabilities, to the last digit, in all audits of the same "
        "weights",
        holds(max(apart) == 0, "agrees"),
    )


def costs() -> tuple[str, str, str]:
    """A reveal curve in inferences."""
    ratios = {
        line["row"]: float(line["mean"]) for line in rows_of("study-claims.csv")
        if (line["table"], line["column"]) == ("efficiency", "srp_ratio")
        and line["row"] in NAMES
    }  # fmt: skip
    transformer = ratios.pop("TransMIL")
    low, high = min(ratios.values()), max(ratios.values())
    return (
        "a reveal costs 91 inferences (TransMIL), 98 (ACMIL), 3.5 to 20 (others)",
        f"{transformer:.0f} for the small TransMIL, {low:.1f} to {high:.1f} for the others "
        "(LC25000, one thread; exact curves of every count)",
        holds(high < 5 < transformer < 91, "cheaper"),
    )


def relevance() -> str:
    """Symmetric relevance gains of class, number and risk by method."""
    methods = {
        "single tile": "single tile", "integrated gradients": "integrated gradients",
        "gradient x input": "gradient x input", "squared gradient": "squared gradient",
        "attention": "own map", "rollout": "rollout", "random": "random",
    }  # fmt: skip
    models = {"abmil": "ABMIL", "transmil": "TransMIL"}
    gains = {
        (row["model"], row["cohort"], row["method"], row["output"]): float(row["gain"])
        for row in rows_of("relevance.csv")
    }

    def cell(model: str, cohort: str, method: str) -> str:
        own = [gains.get((model, cohort, method, kind)) for kind in ("class", "regression", "cox")]
        digits = (1, 2, 2)
        known = ((x, n) for x, n in zip(own, digits, strict=True) if x is not None)
        return "/".join(f"{round(x, n) + 0:.{n}f}" for x, n in known)

    rows = [
        [f"{shown}, {where}", *(cell(model, cohort, method) for method in methods)]
        for model, shown in models.items()
        for cohort, where in IN_RELEVANCE.items()
    ]
    return markdown(["", *methods.values()], rows)


def relevance_notes() -> str:
    """What the gains say of evidence, of stand-ins and of the side that is followed."""
    gains: dict[tuple[str, str], Rows] = {}
    for row in rows_of("relevance.csv"):
        gains.setdefault((row["model"], row["method"]), []).append(row)
    single, evidence = (
        [float(row["gain"]) for row in gains["abmil", name]] for name in ("single tile", "evidence")
    )
    shares = [ours / theirs for ours, theirs in zip(evidence, single, strict=True)]
    stand_in, rollout = gains["transmil", "attention"], gains["transmil", "rollout"]
    below = sum(float(row["high"]) < 0 for row in stand_in)
    above = all(float(row["low"]) > 0 for row in rollout)
    (risk,) = (
        row for row in gains["abmil", "attention"]
        if (row["cohort"], row["output"]) == ("embedded", "cox")
    )  # fmt: skip
    return "\n".join(
        (
            f"- {slides_and_trainings(gains)}.",
            f"- `evidence` has {between(shares)} of the gain of single tiles (ABMIL).",
            f"- **TransMIL's stand-in is no attention map**: surely below 0 in {below} of "
            f"{len(stand_in)}, rollout {holds(above, 'above 0 in all')}.",
            "- xMIL's code follows a number *upwards* on every slide, FOCI towards the model's "
            f"side. Upwards, ABMIL's attention falls from {float(risk['gain']):.2f} to "
            f"{float(risk['always upward']):.2f} (embedded, risk); single tile still beats "
            "attention and both gradients everywhere.",
            "",
        )
    )


def slides_and_trainings(gains: Mapping[tuple[str, str], Rows]) -> str:
    """On how many slides and trainings each model's gains rest."""
    found = []
    for model, name in (("abmil", "ABMIL"), ("transmil", "TransMIL")):
        rows = gains[model, "single tile"]
        (slides,) = {row["slides"] for row in rows}
        classes = [row for row in rows if row["output"] == "class"]
        several = (
            f"{IN_RELEVANCE[row['cohort']]} {row['seeds']}"
            for row in classes
            if row["seeds"] != "1"
        )
        found.append(f"{name}: {slides} test slides (trainings: {', '.join(several)}, others 1)")
    return ", ".join(found)


def relevance_claims() -> str:
    """XMIL's claims: in how many rows the patient interval of the difference excludes 0."""
    differences = {
        (*(row[key] for key in ("cohort", "output", "model", "method", "other method")),): (
            float(row["low"]), float(row["high"])
        )
        for row in rows_of("relevance-pairs.csv")
    }  # fmt: skip
    asked = dict.fromkeys(key[:3] for key in differences)
    maps = {"abmil": "attention", "transmil": "rollout"}
    gradients = ("gradient x input", "squared gradient")

    def beats(asked: tuple[str, ...], a: str, b: str) -> int:
        """1 if the first method surely gains more, -1 if the other does."""
        if (*asked, a, b) not in differences:
            return -beats(asked, b, a)
        low, high = differences[*asked, a, b]
        return int(low > 0) - int(high < 0)

    def cell(model: str, a: str, others: Callable[[str], Sequence[str]]) -> str:
        found = [min(beats(row, a, b) for b in others(model)) for row in asked if row[2] == model]
        contrary = f", contrary {found.count(-1)}" if -1 in found else ""
        return f"{found.count(1)} of {len(found)}{contrary}"

    claims: dict[str, tuple[str, Callable[[str], Sequence[str]]]] = {
        "single tile beats attention and both gradients": (
            "single tile", lambda model: (maps[model], *gradients),
        ),
        "integrated gradients beat attention": (
            "integrated gradients", lambda model: (maps[model],),
        ),
        "... gradient x input": ("integrated gradients", lambda _: gradients[:1]),
        "... squared gradient": ("integrated gradients", lambda _: gradients[1:]),
        "single tile beats integrated gradients": (
            "single tile", lambda _: ("integrated gradients",),
        ),
    }  # fmt: skip
    rows = [
        [claim, *(cell(model, a, others) for model in maps)]
        for claim, (a, others) in claims.items()
    ]  # fmt: skip
    return markdown(["claim", "ABMIL", "TransMIL (attention: rollout)"], rows)


def cohorts() -> str:
    """What the study's cohorts hold."""
    rows = {row["cohort"]: row for row in rows_of("cohorts.csv")}
    about = {
        "nsclc": ("LUAD against LUSC, split by patient into", "regions of 4,096 pixels", "HIPT"),
        "brca": ("IDC against all other subtypes, split by patient into", "the same", ""),
        "lc25000": ("bags of real lung tiles,", "224-pixel tiles", "EfficientNet-Lite0"),
    }
    slides, tiles, shares = ["slides"], ["tiles"], ["32 tiles are"]
    for name, (what, size, encoder) in about.items():
        row = rows[name]
        splits = [int(row[split]) for split in ("train", "val", "test")]
        slides.append(f"{sum(splits)}, {what} {' / '.join(map(str, splits))}")
        width = f"{int(row['features of a tile']):,}-wide {encoder} features, no coordinates"
        each = f"{size}, {width}" if encoder else size
        tiles.append(f"{each}; a median of {row['median tiles, test']}")
        share = float(row["32 tiles of a slide (%)"])
        shares.append(f"**{share:.0f} %** of a slide" if share > 50 else f"{share:.0f} %")
    slides[-1] += "; a positive bag holds 0.5 to 3 % squamous tiles"
    head = ["", *(f"{IN_PAGE[name]} (`{name}`)" for name in about)]
    return markdown(head, [slides, tiles, shares])


def finding() -> str:
    """What the page opens with."""
    rows = rows_of("answers.csv")
    orders = Counter(row["is there a better order?"] for row in rows)
    judged = len(rows) - orders["not assessable"]
    stand_ins = [row for row in rows if row["classifier"] == "TransMIL"]
    maps = [
        row for row in rows if row["classifier"] != "TransMIL" and row["cohort"] != BREAST
        and row["can I believe the map?"] != "not assessable"
    ]  # fmt: skip
    yes, trusted = (sum(row["can I believe the map?"] in BELIEVED for row in own)
                    for own in (maps, stand_ins))  # fmt: skip
    paid = [pair for pair, own in measured("MSK_cond").items() if own["selector"] < own["native"]]
    return (
        "**Attention maps can mostly be believed, and a better order, which needs no training, "
        f"exists nearly everywhere.** Of {len(rows)} classifiers (seven architectures, three "
        "cohorts, three seeds) `evidence` is a better order than the model's own map for "
        f"{orders['headroom']} of the {judged} that can be judged. On lung slides and bags {yes} "
        f"of {len(maps)} attention maps that can be judged are `yes`; of TransMIL's "
        f"{len(stand_ins)} stand-ins {trusted} is. The paper's selector needs fewer tiles than "
        f"attention in {len(paid)} of {len(measured('MSK_cond'))} (classifier, cohort) pairs.\n"
    )


def deciding_shares() -> dict[tuple[str, str], dict[str, float]]:
    """Sure slides with deciding tiles (%) by (cohort, classifier), then by ranking."""
    column = f"decisive sets (%): {', '.join(RANKINGS)}"
    return {
        (row["cohort"], row["classifier"]): dict(
            zip(RANKINGS, map(number, row[column].split(", ")), strict=True)
        )
        for row in rows_of("study-foci.csv")
    }


def selector_notes() -> str:
    """What the paper's selector does here."""
    counts, kept = measured("MSK_cond"), measured("restricted mean K", LUNG)
    saves = [pair for pair, own in counts.items() if own["selector"] < own["native"]]
    slides = {pair: own for pair, own in counts.items() if pair[0] != BAGS}
    worse = sum(own["selector"] > own["native"] for own in slides.values())
    than_random = sum(own["selector"] > own["random"] for own in slides.values())
    larger = sum(counts[pair]["selector"] > counts[pair]["native"] for pair in kept)
    smaller = sum(own["selector"] < own["native"] for own in kept.values())
    lost, auc, at_32 = measured("deletion, per slide"), measured("AUC"), measured("AUC, 32 tiles")
    on_lung = [own["native"] for (c, name), own in lost.items() if c == LUNG and name != "TransMIL"]
    sound = [pair for pair in lost if pair[0] == BAGS and pair[1] not in ("TransMIL", "AttriMIL")]
    on_bags = [lost[pair]["native"] for pair in sound]
    stand_in = [lost[cohort, "TransMIL"]["native"] for cohort in (LUNG, BAGS)]
    at_most = max(own["random"] for own in lost.values())
    moved = max(abs(at_32[pair]["random"] - auc[pair]["native"]) for pair in slides)
    random = [at_32[pair]["random"] for pair in sound]
    attention = [at_32[pair]["native"] for pair in sound]
    return "\n".join(
        (
            f"- **The selector saves tiles in {len(saves)} of {len(counts)} pairs, "
            f"{holds({pair[0] for pair in saves} == {BAGS}, 'all on the LC25000 bags')}.** On TCGA "
            f"it needs more regions than the classifier's own ranking in {worse} of {len(slides)}, "
            f"and more than random order in {than_random}: a budget of 32 tiles that is most of a "
            "slide leaves nothing to learn about order.",
            f"- **MSK_cond and the restricted mean disagree.** On lung the selector has the larger "
            f"MSK_cond for {larger} of {len(kept)} classifiers and the smaller restricted mean for "
            f"{smaller}: fitted for the label, it finds support for the truth on slides that the "
            "classifier gets wrong.",
            "- **Deleting attention's first tiles costs more than deleting random ones; for "
            f"TransMIL's stand-in it {holds(abs(stand_in[1]) < 0.01, 'hardly does')}**: "
            f"{between(on_lung)} per lung slide (TransMIL {stand_in[0]:.2f}), {between(on_bags)} "
            f"per bag (TransMIL {abs(stand_in[1]):.2f}), random ones {at_most:.2f} at most. "
            "AttriMIL, most of whose trainings on the bags failed, is left out there.",
            "- **Selected-only AUC needs bags larger than the selection.** 32 random regions keep "
            f"the AUC of every TCGA classifier to {moved:.3f}; on the bags random order falls to "
            f"{between(random)}, attention keeps {between(attention)}.",
            "",
        )
    )


def between(values: Sequence[float]) -> str:
    """The smallest and the largest."""
    return f"{min(values):.2f} to {max(values):.2f}"


def answers() -> str:
    """Can I believe the map? Of every classifier, with how many seeds say so."""
    return by_cohort(rows_of("study-foci.csv"), lambda rows: rows[0]["can I believe the map?"])


def carried() -> str:
    """Sure slides whose decision the first tiles carry: map, best order, random tiles."""

    def cell(rows: Rows) -> str:
        return ", ".join(f"{float(row['first 32 tiles (%)']):.0f}" for row in rows)

    head = (
        "Sure slides (%) whose decision the first 32 tiles carry: of the map, of the best order, "
        "at random; [other counts](appendix/study-carried.csv):\n\n"
    )
    return head + by_cohort(rows_of("study-carried.csv"), cell)


def foci_notes() -> str:
    """What FOCI's own questions find."""
    asked = [row for row in rows_of("answers.csv") if row["cohort"] == BREAST]
    silent = sum(row["can I believe the map?"] == "not assessable" for row in asked)
    half = {
        (row["cohort"], row["classifier"]): int(row["half at"] or 10**6)
        for row in rows_of("study-carried.csv") if row["order"] == "best order"
    }  # fmt: skip
    bags = {name: k for (cohort, name), k in half.items() if cohort == BAGS}
    few = [k for k in bags.values() if k < 10]
    others = ", ".join(f"{name} {k}" for name, k in bags.items() if k >= 10)
    lung = min(k for (cohort, _), k in half.items() if cohort == LUNG)
    apart = max(abs(own["evidence"] - own["selector"]) for own in deciding_shares().values())
    near = [[*map(number, row[EFFICIENCY].split(", "))] for row in rows_of("study-foci.csv")]
    native, evidence = ([own[place] for own in near if not math.isnan(own[place])]
                        for place in (0, 1))  # fmt: skip
    return "\n".join(
        (
            "- **Few tiles decide where the witnesses are few.** On the bags the best order "
            f"carries half of the decisions with {min(few)} to {max(few)} tiles ({others}). On "
            f"lung slides that takes {lung} regions at least, and on breast it never happens: the "
            "decision survives, as one expects where most regions hold tumour.",
            "- **Many breast classifiers cannot be asked.** Where no ranking has deciding tiles on "
            f"a tenth of the sure slides, the answer is *not assessable*: {silent} of "
            f"{len(asked)}.",
            "- **Training hardly adds to `evidence`.** Shares of slides with deciding tiles differ "
            f"{holds(apart <= 1, 'by a point at most')} between the two.",
            "- **How near is the [proven minimum](proofs.md)?** Efficiencies of attention pooling, "
            f"means over seeds: the map {between(native)}, `evidence` {between(evidence)}. Where "
            "the bound is loose (MHIM-MIL on TCGA) the true ones are higher.",
            "",
        )
    )


EFFICIENCY = f"efficiency: {', '.join(RANKINGS)}"
BELIEVED = ("yes", "only as a pointer", "sufficient, not decisive")


TABLES = {
    "tiles-until-sure": tiles_until_sure,
    "before-and-now": before_and_now,
    "coverage": coverage,
    "finding": finding,
    "claims": claims,
    "selector-notes": selector_notes,
    "answers": answers,
    "carried": carried,
    "foci-notes": foci_notes,
    "relevance": relevance,
    "relevance-notes": relevance_notes,
    "relevance-claims": relevance_claims,
    "cohorts": cohorts,
    "efficiency": efficiency,
}


if __name__ == "__main__":
    for name in PAGES:
        path = DOCS / name
        path.write_text(page_of(path.read_text(encoding="utf-8")), encoding="utf-8")
