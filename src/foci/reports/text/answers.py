"""Answer a reader's three questions from the summary, in plain words."""

from __future__ import annotations

from dataclasses import dataclass

from foci.audits.analysis.summary import PairAgreement, RankingNumbers, Summary, VerdictSummary
from foci.audits.folder.manifest import Manifest
from foci.reports.text.wording import fixed, percent, tiles, with_spread

ADVICE = "Look at Reach; a lower confidence or a larger K_max may show more."


@dataclass(frozen=True)
class Answer:
    """A question, a short answer, and the sentences that support it."""

    question: str
    short: str
    sentences: tuple[str, ...]


def answers(summary: Summary, manifest: Manifest) -> tuple[Answer, ...]:
    """Answer every question in the prediction view."""
    return (_believable(summary, manifest), _how_many(summary), _which(summary))


def recommended(summary: Summary) -> str:
    """Name of the ranking to look at: the selector if it is shown to be better."""
    names = summary.rankings
    verdict = summary.verdict
    if verdict is not None:
        gain = verdict.gain_over_native
        chosen = verdict.verdict in ("headroom", "uninformative native ranking")
        return "selector" if chosen and gain.low > 0 else "native"
    stored: list[str] = [name for name in names if name != "random"] or names
    return min(stored, key=lambda name: _numbers(summary, name).restricted.estimate)


def _believable(summary: Summary, manifest: Manifest) -> Answer:
    question = "Can I believe this map?"
    names = summary.rankings
    if "native" not in names or "random" not in names:
        missing = "native" if "native" not in names else "random"
        why = f"The ranking {missing!r} was not run, so the map was not compared with chance."
        return Answer(question, "Not measured.", (why,))
    native, random = (_numbers(summary, name) for name in ("native", "random"))
    needs = (
        f"In the model's own order it takes {_tiles(native.restricted.estimate)} on "
        f"average until the model is {summary.kappa:g} sure of its decision on the whole slide; "
        f"in a random order, {tiles(random.restricted.estimate)}."
    )
    said = (
        *_counted_as_most(native, random, summary.k_max),
        *_deletion(native, random),
        *_score(manifest),
    )
    verdict = summary.verdict
    if verdict is None:
        return Answer(question, "Compare the two counts.", (needs, *said))
    difference = verdict.random_over_native
    if difference.high < 0:
        short = "Yes, more than chance."
    elif difference.low > 0:
        short = "No: chance does better."
    else:
        short = "Not shown to beat chance."
    paired = f"Native minus random: {with_spread(difference)} tiles."
    return Answer(question, short, (needs, paired, *said))


def _counted_as_most(native: RankingNumbers, random: RankingNumbers, k_max: int) -> tuple[str, ...]:
    """State how many slides never reach and enter the mean as K_max."""
    own, chance = (1 - numbers.reach.estimate for numbers in (native, random))
    if max(own, chance) <= 0:
        return ()
    return (
        f"{percent(own)} of the slides never get there in the model's own order and "
        f"{percent(chance)} in a random one: they count as {k_max}.",
    )


def _deletion(native: RankingNumbers, random: RankingNumbers) -> tuple[str, ...]:
    drops = native.drops
    counts = [k for k, mean in zip(drops.ks, drops.mean, strict=True) if mean is not None]
    if not counts:
        return ()
    k = 16 if 16 in counts else counts[-1]
    own, chance = (
        dict(zip(numbers.drops.ks, numbers.drops.mean, strict=True)).get(k)
        for numbers in (native, random)
    )
    return (
        f"Deleting the first {_tiles(k)} of the model's own order changes its probability by "
        f"{fixed(-own if own is not None else None, 2)}; deleting random tiles changes it by "
        f"{fixed(-chance if chance is not None else None, 2)}.",
    )


def _score(manifest: Manifest) -> tuple[str, ...]:
    if manifest.backbone.score == "proxy":
        return ("This model has no attention of its own: its map is a stand-in.",)
    return ()


def _how_many(summary: Summary) -> Answer:
    name, k_max, kappa = recommended(summary), summary.k_max, summary.kappa
    numbers = _numbers(summary, name)
    median = numbers.median_k
    if median is None:
        short = f"No count up to {k_max} on most slides."
        how = f"fewer than half of the slides reach a confidence of {kappa:g} within {k_max} tiles."
    else:
        short = f"{_tiles(median)} on half of the slides."
        count = "a single tile" if median == 1 else f"{median} tiles or fewer"
        how = f"half of the slides reach a confidence of {kappa:g} after {count}."
    never = 1 - numbers.reach.estimate
    rest = f"; the {percent(never)} that never get there count as {k_max}" if never > 0 else ""
    said = [
        f"Under the {name} ranking, {how}",
        f"The mean over all slides is {with_spread(numbers.restricted)} tiles{rest}.",
    ]
    if numbers.fallback:
        share = percent(numbers.fallback)
        said.append(f"{share} of the slides that get there fall back as more tiles are added.")
    return Answer("How many tiles matter?", short, tuple(said))


def _which(summary: Summary) -> Answer:
    question = "Which tiles?"
    name = recommended(summary)
    verdict = summary.verdict
    said: tuple[str, ...]
    reached = [_numbers(summary, ranking).reach.estimate for ranking in summary.rankings]
    sure = f"to {summary.kappa:g}"
    within = f"within {_tiles(summary.k_max)}"
    if not any(reached):
        why = f"No order brings the model {sure} on any slide {within}."
        return Answer(question, "None is enough.", (why, ADVICE))
    unreached = min(_unreached(summary), 1 - max(reached))
    if unreached > 0.5:
        short = "On most slides none is enough."
        said = (
            f"On {percent(unreached)} of the slides neither the model's own order nor the selector "
            f"nor chance brings the model {sure} {within}: on these slides no measured count of "
            "tiles recovers its decision.",
            ADVICE,
        )
    elif verdict is None and max(reached) < 0.5:
        short = "No order is enough on most slides."
        said = (
            f"The order that gets there most often brings the model {sure} {within} on "
            f"{percent(max(reached))} of the slides.",
            ADVICE,
        )
    elif verdict is None:
        short, said = f"Those of the {name} ranking.", ("It needs the fewest of those tested.",)
    elif verdict.verdict == "headroom":
        short, said = "Those of the selector.", ("It beats the model's own order and chance.",)
    elif verdict.verdict == "conflict":
        short, said = "Those of the model's own order.", ("The selector is worse.",)
    elif verdict.verdict == "saturated":
        why = (
            f"It is not shown to need more than the fewest {_fewest(verdict)}."
            if verdict.near_minimal
            else "There is room for a better order, but the selector did not find it."
        )
        short, said = "Those of the model's own order.", (why,)
    else:
        short = "No order is shown to beat chance."
        said = ("Random tiles recover the decision about as fast: a map adds little here.",)
    overlap = next((pair for pair in summary.agreement if _is_pair(pair)), None)
    if overlap is not None and overlap.jaccard8 is not None:
        said += (
            f"The first 8 tiles of native and selector overlap by {fixed(overlap.jaccard8, 2)} "
            "(Jaccard; 1 means the same tiles).",
        )
    return Answer(question, short, (*said, "Open a slide in the table below to see its tiles."))


def _unreached(summary: Summary) -> float:
    """Share of the slides that no ranking of the verdict reaches; 0 without a verdict."""
    verdict = summary.verdict
    return 0.0 if verdict is None else verdict.n_unreached / verdict.n_slides


def _fewest(verdict: VerdictSummary) -> str:
    first = verdict.first_count
    return "possible" if first == 1 else f"that counts from {first} on can show"


def _is_pair(pair: PairAgreement) -> bool:
    return {pair.first, pair.second} == {"native", "selector"}


def _numbers(summary: Summary, ranking: str) -> RankingNumbers:
    return summary.views["prediction"][ranking]


def _tiles(count: float) -> str:
    return f"{tiles(count)} tile{'s' * (count != 1)}"
