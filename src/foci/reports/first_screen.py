"""The first screen of a report in words: one word, two sentences of counts, what they mean.

The terminal prints the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from foci._version import __version__
from foci.audits.manifest import Manifest
from foci.audits.measure import MOST_SURE
from foci.audits.records import AnswersAtShare, CarriedLine, Summary
from foci.audits.settings import RANDOM, SHARE
from foci.metrics.answers import BELIEVED, Belief, BetterOrder
from foci.outputs import SCALARS
from foci.reports.text import (
    Tone,
    fixed,
    is_stand_in,
    percent,
    performance,
    plain_name,
    tiles,
    tone_of,
)
from foci.words import counted, listed, p_value

QUESTION = "Can I believe this heat map?"

WORDS: dict[Belief, str] = {
    "yes": "Yes",
    "only as a pointer": "Partly",
    "sufficient, not decisive": "Partly",
    "no better than a content-free map": "No",
    "no better than chance": "No",
    "worse than chance": "No",
    "inconclusive": "Can't tell",
    "not assessable": "Can't tell",
}
"""The largest word of a page, by the answer that the tested rule gives."""

_BECAUSE: dict[Belief, str] = {
    "only as a pointer": "The decision needs its first tiles, but they are enough no sooner than "
    "random tiles.",
    "sufficient, not decisive": "Its first tiles are enough, but without them the decision changes "
    "no sooner.",
    "no better than a content-free map": "Maps that know nothing of the model do as well.",
    "no better than chance": "Its first tiles do no better than random tiles.",
    "worse than chance": "Random tiles do better than its first tiles.",
    "inconclusive": "These slides do not settle it.",
}

_BETTER: dict[BetterOrder, str] = {
    "headroom": "A better order exists",
    "mixed": "Another order is better in part",
    "native is better": "The best other order is worse",
    "native suffices": "No other order is better by a size that matters",
    "no better order found": "No better order was found",
    "inconclusive": "It is open whether another order is better",
    "not assessable": "It is open whether another order is better",
}

_PROVEN: dict[BetterOrder, str] = {
    "native suffices": "No order is better by a size that matters",
    "inconclusive": "Whether a better order would matter is open",
}
"""Where the best order is proven, and the map is compared with it."""

_CLEAR = "clearly on one side of the cut"
"""What a risk or a number is where a class would be sure."""

MARKED = 32
"""Count of tiles at which the chart is read in words."""

PAPER = (
    "Jung et al., Are Compact Rationales Free? Measuring Tile Selection Headroom in Frozen "
    "WSI-MIL, 2026"
)


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees first.

    Attributes:
        title, facts: Model, slides and patients; performance.
        notices: What has to be known before the answer, as a bold beginning and the rest.
        word, tone: Yes, No, Partly or Can't tell.
        only: On which slides, if not on all.
        sentences: Why, where it is not plain; how many slides; the better order.
        definition: What was measured, on which slides.
    """

    title: str
    facts: str
    notices: tuple[tuple[str, str], ...]
    word: str
    only: str
    tone: Tone
    sentences: tuple[str, ...]
    definition: str


def first_screen(summary: Summary, manifest: Manifest) -> FirstScreen:
    """The answer in a word, two sentences of counts, and what they mean."""
    found, chart = summary.answers, summary.carried
    relative = next((one for one in found.relative if one.share == SHARE), None)
    in_use = relative if chart is not None and chart.relative is not None else None
    belief = found.map.answer if in_use is None else in_use.map
    only = (found.map if in_use is None else in_use).only
    few = found.n_slides > 0 and found.n_decided < MOST_SURE * found.n_slides
    notices = []
    if is_stand_in(manifest):
        name = manifest.backbone.architecture
        notices.append(
            ("Not the model's own map.", f"{name} gives no tile attention; this is a stand-in.")
        )
    if few:
        sure = "clear" if summary.output in SCALARS else "sure"
        all_slides = f"over all slides, {sure} or not"
        if in_use is not None:
            more = f"So this answer is {all_slides}."
        elif relative is None:
            more = ""
        else:
            limit, same = "", relative.map == belief
            if relative.only:
                limit = f", only on {listed(relative.only)}"
            elif same and only:
                limit = f", not only on {listed(only)}"
            also = "also " * (same and relative.only == only)
            more = f"{all_slides.capitalize()}, the answer is {also}{WORDS[relative.map]}{limit}."
        notices.append((_few_sure(summary), more))
    full = summary.full_bag
    performance_ = performance(full)
    if not performance_ and full.auc is not None:
        performance_ = [("AUC", fixed(full.auc))]
    synthetic = any(note.startswith("Synthetic") for note in manifest.notes)
    split = f"{manifest.split} " if manifest.split else ""
    return FirstScreen(
        title=f"{counted(summary.n_slides, f'{split}slide')}, "
        f"{counted(summary.n_cases, 'patient')}",
        facts=" · ".join(
            [*(f"{name} {value}" for name, value in performance_), *["synthetic"] * synthetic]
        ),
        notices=tuple(notices),
        word=WORDS[belief],
        only=f"Only on slides called {listed(only)}." if only else "",
        tone=tone_of(belief),
        sentences=tuple(_in_counts(summary, belief, in_use)),
        definition=_definition(summary, told=few),
    )


def _few_sure(summary: Summary) -> str:
    """That the model is sure of few slides."""
    n = summary.answers.n_decided
    of = f"{n:,} of {counted(summary.answers.n_slides, 'slide')}"
    if summary.output in SCALARS:
        return f"Only {of} {'is' if n == 1 else 'are'} {_CLEAR}." if n else f"No slide is {_CLEAR}."
    sure = f"The model is at least {percent(summary.kappa)} sure"
    return f"{sure} of only {of}." if n else f"{sure} of no slide."


def _in_counts(summary: Summary, belief: Belief, in_use: AnswersAtShare | None) -> Iterator[str]:
    """The answer in counts of slides."""
    found, chart = summary.answers, summary.carried
    if belief in _BECAUSE:
        yield _BECAUSE[belief]
    if chart is None or belief == "not assessable":
        yield found.map.sentences[0]
    if chart is None:
        return
    k, n = min(MARKED, chart.ks[-1]), chart.n_slides
    if belief in BELIEVED and not chart.count_at(chart.map, chart.ks[-1]):
        # the rule then compares the area under the remove curve
        yield "No few tiles carry a decision here: judged by what the model loses without them."
    first = f"The first {k} tiles" if k > 1 else "The first tile"
    said = f"{first} of this map {'carry' if k > 1 else 'carries'} the decision on "
    said += f"{_or_none(chart.count_at(chart.map, k))} of {counted(n, 'slide')}"
    if RANDOM in chart.lines:
        said += f"; as many random tiles on {_or_none(chart.count_at(RANDOM, k))}"
    typical = ""
    if chart.typical is not None:  # of all slides, also of those that no first tiles carry
        of_all = f" of the {n:,}" if n > 1 else ""
        typical = f"{counted_tiles(chart.typical)} on a typical slide{of_all}"
    counts = []
    if chart.best is not None:
        needs = typical and f" and needs {typical}"
        counts = [f"it carries {chart.count_at(chart.best, k):,} of {n:,}{needs}"]
    elif typical:
        said += f". It takes {typical}"
    yield f"{said}."
    order, against = found.order.answer, found.order.against_native
    better = _BETTER[order]
    if in_use is not None:
        better = _BETTER[in_use.order]
    elif against is not None:
        if chart.best is None and chart.minimum is not None and found.order.efficiency is not None:
            # the best order is proven, but the map stays the one in use
            better = _PROVEN.get(order, better)
            best = CarriedLine(share=chart.minimum, low=[], high=[]).at(chart.ks, k)
            counts = [f"the best possible has {int(best * n + 0.5):,} of {n:,}"]
        # the bands of two lines may overlap: what decides is the comparison on each slide
        axes = [axis for axis in (against.necessity, against.sufficiency) if axis is not None]
        one = next((axis for axis in axes if axis.result in ("better", "worse")), axes[0])
        counts += [
            f"slide by slide better on {_or_none(one.wins)}, worse on {_or_none(one.losses)}"
        ]
    yield f"{better}: {'; '.join(counts)}." if counts else f"{better}."


def _or_none(count: int) -> str:
    return f"{count:,}" if count else "none"


def counted_tiles(value: float) -> str:
    """A number of tiles with its noun.

    >>> counted_tiles(1.0), counted_tiles(10.5)
    ('1 tile', '10.5 tiles')
    """
    return f"{tiles(value)} tile{'s' * (value != 1)}"


def _definition(summary: Summary, told: bool) -> str:
    """What carrying means, and on which slides it was measured."""
    found, chart = summary.answers, summary.carried
    meaning = "these tiles alone give the decision, and without them it changes."
    on = "Measured on the slides counted above."
    if chart is not None and chart.relative is not None:
        meaning = (
            f"these tiles alone make the model {percent(chart.relative)} as sure as the whole "
            "slide does, and without them the decision changes."
        )
        on = "Measured on all slides."
    elif not told and found.n_decided:
        sure = f"the model is at least {percent(summary.kappa)} sure"
        if summary.output in SCALARS:
            sure = f"the output is {_CLEAR}"
        slides = counted(found.n_slides, "slide")
        on = f"Measured on the {found.n_decided} of {slides} where {sure}."
    return f"{meaning} {on} Says what this model uses, not what is diagnostic."


def methods_text(summary: Summary, manifest: Manifest) -> str:
    """A paragraph for a paper: what was done, the numbers, the settings, the version."""
    chart, found, settings = summary.carried, summary.answers, manifest.settings
    version, level = manifest.versions.get("foci", __version__), percent(summary.level)
    kind = " a stand-in score for" if is_stand_in(manifest) else ""
    relative = None if chart is None else chart.relative
    enough = f"give the predicted class a probability of at least {summary.kappa:g}"
    changes, which = "the predicted class changes", "the model was that sure"
    if summary.output in SCALARS:
        enough, changes = "keep the output clearly on its side of the cut", "it crosses the cut"
        which = f"the output was {_CLEAR}"
    if relative is not None:
        enough = (
            f"give the predicted class {percent(relative)} of its probability on the whole slide"
        )
        which = "there were two tiles"
    parts = [
        f"We audited{kind} the tile heat map of {manifest.name} "
        f"({manifest.backbone.architecture}, weights {manifest.backbone.fingerprint[:12]}) with "
        f"FOCI {version} ({PAPER}) on {counted(summary.n_slides, 'slide')} of "
        f"{counted(summary.n_cases, 'patient')}.",
        f"The first K tiles of an order carry the decision on a slide if they alone {enough}, "
        f"and {changes} when they are removed from the slide (K up to {summary.k_max}).",
    ]
    if chart is not None:
        k = min(MARKED, chart.ks[-1])
        at = chart.ks.index(max(count for count in chart.ks if count <= k))
        lines = []
        for name, line in chart.lines.items():
            low, high = line.low[at], line.high[at]
            known = low is not None and high is not None
            spread_ = f", {level} interval {percent(low)} to {percent(high)}" if known else ""
            called = plain_name(name, manifest)
            lines.append(f"{called} {percent(line.share[at])}{spread_}")
        typical = ""
        if chart.typical is not None:
            order = plain_name(chart.best or chart.map, manifest)
            typical = (
                f" Half of these slides take {counted_tiles(chart.typical)} or fewer ({order})."
            )
        parts.append(
            f"On the {counted(chart.n_slides, 'slide')} of {counted(chart.n_cases, 'patient')} "
            f"where {which}, the first {counted(k, 'tile')} carried the decision on this share of "
            f"slides: {'; '.join(lines)}.{typical}"
        )
    for comparison in (found.map.comparison, found.order.against_native):
        axis = None if comparison is None else comparison.necessity or comparison.sufficiency
        if comparison is not None and axis is not None:
            first, second = (plain_name(n, manifest) for n in (comparison.first, comparison.second))
            parts.append(
                f"By {axis.measure}, {first} was better than {second} on {axis.wins} and worse on "
                f"{axis.losses} of {counted(axis.n_slides, 'slide')} "
                f"({p_value(axis.pvalue)}, sign-flip test over patients)."
            )
    parts.append(
        f"Intervals are from {settings.n_boot} bootstrap draws of patients; random tiles are the "
        f"mean of {counted(settings.random_orders, 'order')}. Answers by the rules of FOCI: "
        f"believe the map: {found.map.answer}; better order: {found.order.short}."
    )
    return " ".join(parts)
