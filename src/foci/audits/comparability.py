"""What keeps audits from being compared number by number, in plain sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from foci.audits.audit import Audit
from foci.errors import FociError


def comparability(audits: Sequence[Audit], names: Sequence[str]) -> list[str]:
    """Everything that differs and matters; refuses audits that share no slide and no class.

    Args:
        audits: Two or more.
        names: What the audits are called in the table.
    """
    slides = [{slide.slide_id for slide in audit.slides} for audit in audits]
    classes = [set(audit.summary["classes"]) for audit in audits]
    if not set.intersection(*slides) and not set.intersection(*classes):
        fix = "compare audits of one task"
        raise FociError(", ".join(names), "share neither a slide nor a class", fix)
    return [
        *_settings(audits, names),
        *_slides(slides, names),
        *_features(audits),
        *_rankings(audits, names),
    ]


def _settings(audits: Sequence[Audit], names: Sequence[str]) -> list[str]:
    compared: tuple[tuple[str, str, Callable[[Audit], Any]], ...] = (
        ("kappa differs", "counts answer different questions", lambda a: a.summary["kappa"]),
        ("k_max differs", "restricted means end at different counts", lambda a: a.summary["k_max"]),
        ("classes differ", "AUC is of different tasks", lambda a: ", ".join(a.summary["classes"])),
        ("target differs", "selectors support different classes", lambda a: _setting(a, "target")),
        ("recipe differs", "selectors were fitted differently", lambda a: _setting(a, "recipe")),
        ("split differs", "slides may have been trained on", lambda a: _setting(a, "split")),
    )
    said = []
    for what, consequence, read in compared:
        values = [read(audit) for audit in audits]
        if any(value != values[0] for value in values):
            each = "; ".join(f"{n} {v}" for n, v in zip(names, values, strict=True))
            said.append(f"{what} ({each}): {consequence}.")
    return said


def _setting(audit: Audit, name: str) -> Any:
    return audit.manifest["settings"].get(name)


def _slides(slides: Sequence[set[str]], names: Sequence[str]) -> list[str]:
    common = set.intersection(*slides)
    if all(found == common for found in slides):
        return []
    each = "; ".join(f"{name} {len(found)}" for name, found in zip(names, slides, strict=True))
    return [f"slides differ ({each}; {len(common)} in common): means are over different slides."]


def _features(audits: Sequence[Audit]) -> list[str]:
    seen: dict[str, set[tuple[int, str]]] = {}
    for audit in audits:
        for slide in audit.slides:
            seen.setdefault(slide.slide_id, set()).add((slide.n_tiles, slide.features_sha256))
    n = sum(len(found) > 1 for found in seen.values())
    if not n:
        return []
    return [f"features differ on {n} of the shared slides: a tile is not the same tile in each."]


def _rankings(audits: Sequence[Audit], names: Sequence[str]) -> list[str]:
    ran = [audit.summary["rankings"] for audit in audits]
    every = dict.fromkeys(ranking for rankings in ran for ranking in rankings)
    said = []
    for ranking in every:
        lacking = [
            name for name, rankings in zip(names, ran, strict=True) if ranking not in rankings
        ]
        if lacking:
            said.append(f"{ranking} was not run in {', '.join(lacking)}.")
    return said
