"""Alarms about the bags themselves: the same one twice, tiles that are all zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from foci.audits.folder.slides import AuditedSlide
from foci.audits.records import Alarm
from foci.words.plural import counted, some

ZERO_SHARE = 0.5
"""Share of zero tiles from which a bag is named."""


def duplicate_bags(slides: Sequence[AuditedSlide]) -> Alarm | None:
    """Slides that hold the same features under several names."""
    by_content = defaultdict[str | None, list[AuditedSlide]](list)
    for slide in slides:
        by_content[slide.fingerprint].append(slide)
    groups = [same for same in by_content.values() if len(same) > 1]
    if not groups:
        return None
    named = [slide.slide_id for same in groups for slide in same]
    unlike = sum(len({slide.label for slide in same} - {None}) > 1 for same in groups)
    sentence = (
        f"{some(named)} hold the same features as another slide: "
        f"{counted(len(slides), 'audited slide')} are only {len(by_content)} different ones, so "
        "that means count some of them again and intervals are too narrow."
    )
    if unlike:
        sentence += f" {counted(unlike, 'group')} of equal bags with different labels."
    return Alarm(
        kind="duplicate bags",
        sentence=sentence,
        numbers={"slides": len(named), "different": len(by_content), "audited": len(slides)},
        slides=named,
    )


def zero_tiles(slides: Sequence[AuditedSlide]) -> Alarm | None:
    """Slides of whose tiles at least half have no features."""
    bad = [s for s in slides if s.n_zero is not None and s.n_zero >= ZERO_SHARE * s.n_tiles]
    if not bad:
        return None
    worst = max(bad, key=lambda slide: (slide.n_zero or 0) / slide.n_tiles)
    named = [slide.slide_id for slide in bad]
    return Alarm(
        kind="zero tiles",
        sentence=(
            f"Half or more of the tiles are all zero in {some(named)}; in {worst.slide_id} "
            f"{worst.n_zero} of {worst.n_tiles}. Such tiles were padded or never encoded: extract "
            "these slides again."
        ),
        numbers={"slides": len(bad), "worst_share": (worst.n_zero or 0) / worst.n_tiles},
        slides=named,
    )
