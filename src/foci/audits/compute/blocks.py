"""The pass over the audited slides, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from foci.audits.compute.jobs import Unit
from foci.audits.compute.partial import Parts
from foci.audits.compute.slide import RevealedSlide, SlideReveal
from foci.audits.folder.slides import AuditedSlide
from foci.bags import Slide
from foci.bags.store import BagStore
from foci.errors import FociError
from foci.progress import Progress


@dataclass
class Block:
    """Some consecutive slides, and what is known of them.

    Attributes:
        number: Which block.
        slides: Its slides that have to be read.
        units: What is still to be computed.
        settled: Its slides as an earlier run has left them; None for a new block.
        facts: Its slides as this run finds them.
        revealed: Those of them that were not skipped.
    """

    number: int
    slides: tuple[Slide, ...]
    units: tuple[Unit, ...]
    settled: tuple[AuditedSlide, ...] | None
    facts: list[AuditedSlide] = field(default_factory=list)
    revealed: list[RevealedSlide] = field(default_factory=list)


def n_blocks(slides: Sequence[Slide], size: int) -> int:
    """How many blocks the slides make."""
    return -(-len(slides) // size)


def reveal_blocks(
    slides: Sequence[Slide],
    store: BagStore,
    reveal: SlideReveal,
    units: Sequence[Unit],
    parts: Parts,
    *,
    progress: Progress,
    say: Callable[[str], None],
) -> None:
    """Compute and write whatever is missing; every bag is read once for all units.

    A slide that cannot be read, or that a ranking refuses, is skipped under every ranking.
    """
    size = reveal.settings.block
    blocks = [
        _block(number, slides[number * size : (number + 1) * size], units, parts)
        for number in range(n_blocks(slides, size))
    ]
    work = [(block, slide) for block in blocks if block.units for slide in block.slides]
    for step in progress(range(len(work)), "revealing slides"):
        block, slide = work[step]
        _add(block, slide, store, reveal, say)
        if len(block.facts) == len(block.slides):
            _write(block, parts)
            block.facts, block.revealed = [], []
    for block in blocks:  # all of its slides were skipped before
        if block.units and not block.slides:
            _write(block, parts)


def _block(number: int, slides: Sequence[Slide], units: Sequence[Unit], parts: Parts) -> Block:
    settled = parts.slides(number)
    if settled is None:
        return Block(number, tuple(slides), tuple(units), None)
    kept = {slide.slide_id for slide in settled if slide.skipped is None}
    wanted = tuple(slide for slide in slides if slide.slide_id in kept)
    return Block(number, wanted, parts.missing(number, units), settled)


def _add(
    block: Block, slide: Slide, store: BagStore, reveal: SlideReveal, say: Callable[[str], None]
) -> None:
    try:
        found = reveal(slide, store.bag(slide), block.units)
    except FociError as error:
        if block.settled is not None:
            raise
        reason = str(error)
        say(f"skipped {slide.slide_id}: {reason}")
        block.facts.append(AuditedSlide(slide.slide_id, slide.case_id, slide.label, skipped=reason))
        return
    if block.settled is not None and found.slide not in block.settled:
        raise FociError(
            slide.slide_id, "has other features than when the audit began", "give --force"
        )
    block.facts.append(found.slide)
    block.revealed.append(found)


def _write(block: Block, parts: Parts) -> None:
    if block.settled is None:
        parts.write_slides(block.number, block.facts, block.revealed)
    for unit in block.units:
        parts.write_unit(block.number, unit, block.revealed)
