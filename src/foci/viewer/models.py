"""Schema of what the viewer's server sends; the TypeScript types are generated from it."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from foci.audits.records import Counts, Record
from foci.audits.settings import View
from foci.reports.models import AuditPayload, SlideDetail, schema_text, write_schema
from foci.reports.text import Tone


class CohortAnswer(Record):
    """One of the three answers."""

    question: str
    short: str
    tone: Tone
    sentences: list[str]


class SlideFlags(Record):
    """What the presets of the slide table choose by, one entry per slide.

    Attributes:
        undecided: The model itself is less than kappa sure of the whole slide.
        falls_back: Under native or the best ranking, some seed reaches kappa and loses it again.
        shared: Share of the first tiles of one ranking that the other has among its own.
        image: A whole-slide image was found.
    """

    undecided: list[bool]
    falls_back: list[bool]
    shared: list[float | None]
    image: list[bool]


class ViewerCohort(Record):
    """Everything that is known before a slide is opened.

    Attributes:
        audit: As a report embeds it, without the curves of single slides.
        name: The audit.
        line: The sentence that stands on every page.
        answers: The three answers; none where an audit has none.
        alarms: Reasons why the numbers may not mean what they seem to mean.
        notes: Of the audit.
        native: The ranking on the horizontal axis.
        best: The ranking that it is compared with; None where there is no other.
        shared_of: How many first tiles ``flags.shared`` compares.
        flags: By slide.
        names: What every ranking is called on the page.
        colours: Of every ranking, on a light and on a dark ground.
    """

    kind: Literal["cohort"] = "cohort"
    audit: AuditPayload
    name: str
    line: str
    answers: list[CohortAnswer]
    alarms: list[str]
    notes: list[str]
    native: str
    best: str | None
    shared_of: int
    flags: SlideFlags
    names: dict[str, str]
    colours: dict[str, tuple[str, str]]


class DecisionCurve(Record):
    """What the model says of some tiles of a slide, at the counts that were measured.

    Attributes:
        p: Probability of the class that is followed.
        says: Class that the model decides for, its number.
        sure: Its probability.
    """

    ks: Counts
    p: list[float]
    says: Counts
    sure: list[float]


class SlidePyramid(Record):
    """A whole-slide image in the browser.

    Attributes:
        width: Of the scanned part, in level-0 pixels.
        height: The same.
        origin: Its top-left corner in level-0 pixels.
        side: Pixels of one picture.
        coarsest: First level.
        finest: Last level.
        mpp: Micrometres per level-0 pixel; None where unknown.
        version: Changes whenever the file does.
    """

    width: int
    height: int
    origin: tuple[int, int]
    side: int
    coarsest: int
    finest: int
    mpp: float | None
    version: str


class ViewerSlide(Record):
    """One slide.

    Attributes:
        number: Its number in the audit.
        detail: Tiles, orders and reveal curves, complete.
        keeps: The first K tiles alone, by view and column.
        deletions: The slide without its first K tiles, likewise.
        pyramid: Its image; None where there is none, or it cannot be read.
        message: Why the image cannot be shown.
    """

    kind: Literal["slide"] = "slide"
    number: int
    detail: SlideDetail
    keeps: dict[View, dict[str, DecisionCurve]]
    deletions: dict[View, dict[str, DecisionCurve]]
    pyramid: SlidePyramid | None
    message: str | None


class StudyTile(Record):
    """A tile that a reader is asked about: number of its slide, position in the bag, his label."""

    slide: int
    tile: int
    label: str | None


class ViewerStudy(Record):
    """A reader study: the labels to choose from, and the tiles in the reader's own order."""

    kind: Literal["study"] = "study"
    labels: list[str]
    tiles: list[StudyTile]


ViewerData = Annotated[ViewerCohort | ViewerSlide | ViewerStudy, Field(discriminator="kind")]


def viewer_schema() -> str:
    """JSON Schema as text."""
    adapter: TypeAdapter[ViewerData] = TypeAdapter(ViewerData)
    return schema_text("ViewerData", adapter)


if __name__ == "__main__":
    write_schema(sys.argv[1], viewer_schema())
