"""Alarms about where slides come from: encoders, slides and patients of the training."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from foci.audits.folder.slides import AuditedSlide
from foci.audits.records import Alarm
from foci.backbones.saved import ModelRecord, TrainingData
from foci.words.plural import tally


def other_encoder(slides: Sequence[AuditedSlide], data: TrainingData | None) -> Alarm | None:
    """Audited slides of another encoder than any that the model was trained on."""
    if data is None or not data.encoders:
        return None
    known = {_plain(name) for name in data.encoders}
    strange = [s for s in slides if s.encoder is not None and _plain(s.encoder) not in known]
    if not strange:
        return None
    return Alarm(
        kind="other encoder",
        sentence=(
            f"{len(strange)} of {len(slides)} audited slides were encoded by "
            f"{_names(s.encoder for s in strange)}, but the model was trained on features of "
            f"{_names(data.encoders)}. They are equally wide and mean something else: what is "
            "measured on them does not describe the model."
        ),
        numbers={"slides": len(strange), "audited": len(slides)},
        slides=[slide.slide_id for slide in strange],
    )


def mixed_encoders(
    slides: Sequence[AuditedSlide], fitted: Mapping[str, str | None]
) -> Alarm | None:
    """Features of several encoders among the slides that were audited or fitted on."""
    every = {**fitted, **{slide.slide_id: slide.encoder for slide in slides}}
    named = {name: encoder for name, encoder in every.items() if encoder is not None}
    counts = Counter(_plain(encoder) for encoder in named.values())
    if len(counts) < 2:
        return None
    usual = counts.most_common(1)[0][0]
    odd = [name for name, encoder in named.items() if _plain(encoder) != usual]
    return Alarm(
        kind="mixed encoders",
        sentence=(
            f"The cohort mixes features of {len(counts)} encoders "
            f"({tally(Counter(named.values()))} slides): a model can read only one of them. Use "
            "one encoder for the whole cohort."
        ),
        numbers={"encoders": len(counts), "slides": len(odd)},
        slides=odd,
    )


def training_slides(
    slides: Sequence[AuditedSlide], data: TrainingData | None, trained_on: Collection[str]
) -> Alarm | None:
    """Audited slides that the model was trained on, under their own or under other names."""
    content = set() if data is None else set(data.fingerprints.values())
    named = [s.slide_id for s in slides if s.slide_id in trained_on]
    renamed = [
        s.slide_id for s in slides if s.fingerprint in content and s.slide_id not in trained_on
    ]
    if not named and not renamed:
        return None
    seen = [s.slide_id for s in slides if s.slide_id in {*named, *renamed}]
    under = f", {len(renamed)} of them under other names" if renamed else ""
    return Alarm(
        kind="training slides",
        sentence=(
            f"{len(seen)} of the {len(slides)} audited slides are among those that the model was "
            f"trained on{under}: what is measured there does not carry over to new slides."
        ),
        numbers={"slides": len(seen), "renamed": len(renamed), "audited": len(slides)},
        slides=seen,
    )


def patient_overlap(slides: Sequence[AuditedSlide], overlapping: Collection[str]) -> Alarm | None:
    """Audited slides of patients who are in another split as well."""
    touched = [slide.slide_id for slide in slides if slide.case_id in overlapping]
    if not touched:
        return None
    return Alarm(
        kind="patient overlap",
        sentence=(
            f"{len(touched)} of the {len(slides)} audited slides are of patients in another split "
            "as well: what is measured there does not carry over to new patients."
        ),
        numbers={"slides": len(touched), "audited": len(slides), "patients": len(overlapping)},
        slides=touched,
    )


def not_compared(slides: Sequence[AuditedSlide], record: ModelRecord | None) -> list[str]:
    """Notes on what could not be compared with the features that a model was trained on."""
    if record is None:
        return []
    data = record.data
    if data is None:
        return [
            "the model's folder does not say which features it was trained on: encoder and "
            "training slides cannot be compared"
        ]
    silent = sum(slide.encoder is None for slide in slides)
    if data.encoders and silent:
        return [
            f"{silent} of {len(slides)} audited slides are of files that name no encoder: whether "
            f"it is {_names(data.encoders)}, as in training, cannot be told"
        ]
    if not data.encoders and silent < len(slides):
        return ["the model was trained on files that name no encoder: it cannot be compared"]
    return []


def _plain(encoder: str) -> str:
    """An encoder's name without case and punctuation: tools spell it differently."""
    return re.sub(r"[^a-z0-9]", "", encoder.lower())


def _names(encoders: Iterable[str | None]) -> str:
    return " and ".join(sorted({name for name in encoders if name is not None}))
