"""List the differences between audits that make their numbers incomparable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from foci.audits.audit import StoredAudit
from foci.errors import FociError


def differences(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    """List every difference that matters, one sentence each.

    Args:
        audits: Two or more audits.
        names: Names of the audits in the table.

    Raises:
        FociError: If the audits share neither a slide nor a class.
    """
    slides = [{slide.slide_id for slide in audit.slides} for audit in audits]
    classes = [set(audit.summary.classes) for audit in audits]
    if not set.intersection(*slides) and not set.intersection(*classes):
        fix = "compare audits of one task"
        raise FociError(", ".join(names), "share neither a slide nor a class", fix)
    return [
        *_settings(audits, names),
        *_recipes(audits, names),
        *_slides(slides, names),
        *_features(audits, names),
        *_rankings(audits, names),
    ]


def _settings(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    """Compare settings; each counts only in audits whose rankings depend on it."""
    compared: tuple[tuple[str, str, Callable[[StoredAudit], Any]], ...] = (
        ("kappa differs", "counts answer different questions", lambda a: a.summary.kappa),
        ("k_max differs", "restricted means end at different counts", lambda a: a.summary.k_max),
        ("classes differ", "AUC is of different tasks", lambda a: ", ".join(a.summary.classes)),
        ("fit_target differs", "selectors support different classes",
         _if_run("selector", "fitted_for")),
        ("choose_by differs", "epochs were chosen differently", _if_run("selector", "chosen_by")),
        ("seeds differ", "selectors are of different fits", _if_run("selector", "seeds")),
        ("random_orders differs", "means of random are over different orders",
         _if_run("random", "random_orders")),
        ("map differs", "native is not the same kind of map in each", _map),
        ("deletion differs", "drops are of different counts", lambda a: _setting(a, "deletion")),
        ("split differs", "slides may have been trained on", lambda a: _setting(a, "split")),
    )  # fmt: skip
    sentences = []
    for what, consequence, read in compared:
        every = [(name, read(audit)) for name, audit in zip(names, audits, strict=True)]
        values = [(name, value) for name, value in every if value is not None]
        if any(value != values[0][1] for _, value in values):
            each = "; ".join(f"{name} {_text(value)}" for name, value in values)
            sentences.append(f"{what} ({each}): {consequence}.")
    return sentences


def _setting(audit: StoredAudit, name: str) -> Any:
    return getattr(audit.manifest.settings, name)


def _if_run(ranking: str, name: str) -> Callable[[StoredAudit], Any]:
    return lambda audit: _setting(audit, name) if ranking in audit.summary.rankings else None


def _map(audit: StoredAudit) -> str:
    return _setting(audit, "map") or "the model's own"


def _recipes(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    """Compare recipes by all of their settings, whatever their names."""
    fitted = [
        (name, audit.manifest.settings)
        for name, audit in zip(names, audits, strict=True)
        if "selector" in audit.summary.rankings
    ]
    plans = [settings.plan.model_dump(exclude={"name"}) for _, settings in fitted]
    if all(plan == plans[0] for plan in plans):
        return []
    each = "; ".join(
        " with ".join([f"{name} {settings.recipe}", *_changes(settings.recipe_settings)])
        for name, settings in fitted
    )
    return [f"recipe differs ({each}): selectors were fitted differently."]


def _changes(given: Mapping[str, Any]) -> list[str]:
    return [", ".join(f"{key}={value}" for key, value in given.items())] if given else []


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _slides(slides: Sequence[set[str]], names: Sequence[str]) -> list[str]:
    common = set.intersection(*slides)
    if all(own == common for own in slides):
        return []
    each = "; ".join(f"{name} {len(own)}" for name, own in zip(names, slides, strict=True))
    together = "in common" if len(slides) == 2 else "in all of them"
    return [f"slides differ ({each}; {len(common)} {together}): means are over different slides."]


def _features(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    """Compare features pair by pair: two of three audits may share slides that the third lacks."""
    seen = [
        {slide.slide_id: (slide.n_tiles, slide.features_sha256) for slide in audit.slides}
        for audit in audits
    ]
    differ = []
    for (name, first), (other, second) in combinations(zip(names, seen, strict=True), 2):
        shared = first.keys() & second.keys()
        n = sum(first[slide] != second[slide] for slide in shared)
        if n:
            differ.append(f"{name} and {other} on {n} of {len(shared)} shared")
    if not differ:
        return []
    return [f"features differ ({'; '.join(differ)}): a tile is not the same tile in each."]


def _rankings(audits: Sequence[StoredAudit], names: Sequence[str]) -> list[str]:
    ran = [audit.summary.rankings for audit in audits]
    every = dict.fromkeys(ranking for rankings in ran for ranking in rankings)
    sentences = []
    for ranking in every:
        lacking = [
            name for name, rankings in zip(names, ran, strict=True) if ranking not in rankings
        ]
        if lacking:
            sentences.append(f"{ranking} was not run in {', '.join(lacking)}.")
    return sentences
