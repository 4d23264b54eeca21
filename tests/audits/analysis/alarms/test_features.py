"""Encoders, training slides and bags: who is named, and who is not."""

from foci.audits.alarms import (
    mixed_encoders,
    not_compared,
    other_encoder,
    training_slides,
    zero_tiles,
)
from foci.audits.stored import AuditedSlide
from foci.backbones.saved import ModelRecord, TrainingData


def slide(name: str, encoder: str | None = None, content: str = "", **more: object) -> AuditedSlide:
    facts = {"n_tiles": 10, "n_total": 10, **more}
    return AuditedSlide(name, name, encoder=encoder, fingerprint=content or name, **facts)


def data(*encoders: str, **slides: str) -> TrainingData:
    return TrainingData(width=8, encoders=dict.fromkeys(encoders, 3), fingerprints=slides)


def model(known: TrainingData | None) -> ModelRecord:
    return ModelRecord(
        format=1, architecture="abmil", config={}, fingerprint="0", parameters=1, data=known
    )


def test_an_encoder_is_known_by_its_letters_and_digits() -> None:
    slides = [slide("s0", "UNI-v2"), slide("s1", "uni_v2"), slide("s2", None)]
    assert other_encoder(slides, data("uni_v2")) is None
    assert mixed_encoders(slides, {}) is None
    alarm = other_encoder([*slides, slide("s3", "uni_v1")], data("uni_v2"))
    assert alarm is not None
    assert alarm.slides == ["s3"]


def test_nothing_to_compare_with_is_no_alarm() -> None:
    slides = [slide("s0", "conch")]
    assert other_encoder(slides, None) is None
    assert other_encoder(slides, data()) is None
    assert training_slides(slides, None, ()) is None


def test_what_could_not_be_compared_is_said() -> None:
    named, silent = slide("s0", "conch"), slide("s1")
    assert not_compared([named], None) == []
    assert not_compared([named], model(data("conch"))) == []
    assert not_compared([silent], model(data())) == []
    assert "does not say which features" in not_compared([named], model(None))[0]
    assert "name no encoder: it cannot be" in not_compared([named], model(data()))[0]
    (note,) = not_compared([named, silent], model(data("uni")))
    assert note.startswith("1 of 2 audited slides are of files that name no encoder: whether it is")


def test_training_slides_by_name_and_by_content() -> None:
    slides = [slide("s0"), slide("new", content="x"), slide("t1"), slide("s3")]
    alarm = training_slides(slides, data(old="x", t1="t1"), {"old", "t1"})
    assert alarm is not None
    assert alarm.slides == ["new", "t1"]
    assert alarm.numbers == {"slides": 2, "renamed": 1, "audited": 4}
    by_name = training_slides(slides, None, {"t1"})
    assert by_name is not None
    assert "under other names" not in by_name.sentence


def test_half_is_the_limit_for_zero_tiles() -> None:
    found = zero_tiles([slide("s0", n_zero=4), slide("s1", n_zero=5), slide("s2", n_zero=9)])
    assert found is not None
    assert found.slides == ["s1", "s2"]
    assert "in s2 9 of 10" in found.sentence
    assert found.numbers == {"slides": 2, "worst_share": 0.9}
    assert zero_tiles([slide("s0", n_zero=4), slide("s1")]) is None
