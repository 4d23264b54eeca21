"""All alarms of an audit, those that question the most numbers first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from foci.audits.analysis.alarms.bags import duplicate_bags, zero_tiles
from foci.audits.analysis.alarms.features import (
    mixed_encoders,
    other_encoder,
    patient_overlap,
    training_slides,
)
from foci.audits.analysis.alarms.predictions import (
    below_chance,
    below_test_figure,
    constant_answer,
    single_class,
)
from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.folder.slides import AuditedSlide
from foci.audits.records import Alarm
from foci.audits.settings import View
from foci.backbones.saved import ModelRecord


def find_alarms(
    slides: Sequence[AuditedSlide],
    views: Mapping[View, ViewSlides],
    classes: Sequence[str],
    *,
    record: ModelRecord | None = None,
    trained_on: Collection[str] = (),
    fitted: Mapping[str, str | None] | None = None,
    overlapping: Collection[str] = (),
) -> list[Alarm]:
    """Compare the audited slides with each other, with the model's record and with its answers.

    None of it depends on the threshold or the budget.

    Args:
        slides: The audited slides.
        views: The same slides, by view.
        classes: Class names, in the model's order.
        record: What the model's folder says; None for any other model.
        trained_on: Slides that the model was trained on, if known.
        fitted: Encoder of every slide that selectors were fitted on, None where the file names
            none.
        overlapping: Patients in more than one split.
    """
    everyone, labelled = views["prediction"], views.get("label")
    data = None if record is None else record.data
    constant = constant_answer(everyone)
    found = (
        other_encoder(slides, data),
        mixed_encoders(slides, fitted or {}),
        below_chance(labelled, classes),
        below_test_figure(labelled, record),
        constant,
        None if constant else single_class(everyone, labelled, classes),
        training_slides(slides, data, trained_on),
        patient_overlap(slides, overlapping),
        duplicate_bags(slides),
        zero_tiles(slides),
    )
    return [alarm for alarm in found if alarm is not None]
