"""Answers of the user's own code tell the variants of a checkpoint apart."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foci.backbones import Backbone, load
from foci.backbones.checkpoints import agree, check_answers, open_checkpoint
from foci.backbones.checkpoints.expect import read_expected
from foci.backbones.checkpoints.formats import FORMATS
from foci.bags import Cohort
from foci.errors import CheckpointError, CohortError
from tests.backbones.checkpoints.official_files import D_IN, OFFICIAL, save_official
from tests.makers.cohorts import Row, read, write_cohort

BY_NAME = {format_.name: format_ for format_ in FORMATS}
VALUES = {
    ("dsmil-2021", "relu"),
    ("dsmil-passing-v", "linear"),
    ("dsmil-mhim-v2", "linear"),
    ("mhim-v1-dsmil", "linear"),
    ("mhim-v2-dsmil", "linear"),
}
"""DSMIL files with a layer of values, and what that layer may be other than by default."""


def is_open(name: str, option: str, value: Any) -> bool:
    """Whether a file leaves it open: the number of classes tells ``negative``.

    Of some options FOCI has only one value, and a file is refused until somebody says it.
    """
    settled = option in ("negative", "attention", "pos", "merge_test")
    return not settled and (option != "value" or (name, value) in VALUES)


OPEN = [
    (name, option, value)
    for name, official in OFFICIAL.items()
    for option, about in BY_NAME[official.format].options.items()
    for value in about.choices
    if about.predicts
    and value != official.options.get(option, about.default)
    and is_open(name, option, value)
]
SETTLED = [
    (name, value)
    for name, official in OFFICIAL.items()
    for value in getattr(BY_NAME[official.format].options.get("value"), "choices", ())
    if (name, value) not in VALUES
]


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    rng = np.random.default_rng(0)
    sizes = {"s0": 11, "s1": 30, "s2": 17}
    bags = {name: rng.normal(size=(n, D_IN)).astype(np.float32) for name, n in sizes.items()}
    rows = (Row(name, x, name, "ab"[i % 2], "test") for i, (name, x) in enumerate(bags.items()))
    return read(write_cohort(tmp_path_factory.mktemp("cohort"), rows), n_cap=None)


def whole_bags(cohort: Cohort) -> dict[str, torch.Tensor]:
    return {slide.slide_id: cohort.bag(slide.slide_id).x for slide in cohort}


def printed(
    path: Path, backbone: Backbone, cohort: Cohort, *, digits: int = 17, logits: bool = False
) -> Path:
    """What the user's own code would have printed."""
    prefix = "logit" if logits else "p"
    table = path.with_suffix(".csv")
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["slide_id", *(f"{prefix}{c}" for c in range(backbone.n_classes))])
        for slide, bag in whole_bags(cohort).items():
            numbers = backbone(bag).tolist() if logits else backbone.predict(bag).tolist()
            writer.writerow([slide, *(f"{number:.{digits}f}" for number in numbers)])
    return table


def written(path: Path, columns: Sequence[str], *rows: Sequence[Any]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def test_every_family_with_something_open_is_here() -> None:
    tried = {OFFICIAL[name].format for name, _, _ in OPEN}
    rest = {"ABMIL of torchmil", "CLAM-SB of torchmil", "Gated ABMIL of the MHIM-MIL v1 code",
            "Gated ABMIL of the MHIM-MIL v2 code without biases", "DSMIL of torchmil",
            "Attention_MIL of slideflow"}  # fmt: skip
    has_choices = {
        format_.name
        for format_ in FORMATS
        if any(option.choices and option.predicts for option in format_.options.values())
    }
    assert has_choices - rest == tried


@pytest.mark.parametrize(("name", "option", "value"), OPEN)
def test_a_variant_that_would_load_wrongly_is_found(
    name: str, option: str, value: Any, tmp_path: Path, cohort: Cohort
) -> None:
    path, given = save_official(tmp_path, name), dict(OFFICIAL[name].options)
    truth = load(path, **{**given, option: value})
    table = printed(path, truth, cohort, logits=True)
    known = {key: value for key, value in given.items() if key == "landmarks"}

    found, agreement = agree(path, table, cohort, **known)

    assert found.backbone.config == truth.config
    assert agreement.taken.options[option] == value
    assert agreement.taken.difference < 1e-6
    assert len(agreement.tried) > 1
    assert all(one.difference > 1e-6 for one in agreement.tried[1:])
    assert not any(note.startswith(f"{option}=") for note in found.facts.notes)


@pytest.mark.parametrize(("name", "value"), SETTLED)
def test_a_file_that_settles_an_option_loads_alike(name: str, value: str, tmp_path: Path) -> None:
    path, given = save_official(tmp_path, name), OFFICIAL[name].options
    assert load(path, **{**given, "value": value}).config == load(path, **given).config


@pytest.mark.parametrize(("classes", "negative"), [("ab", False), ("abc", True)])
def test_the_classes_of_the_cohort_tell_a_negative_class(
    classes: str, negative: bool, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    rows = (
        Row(f"s{i}", rng.normal(size=(9, D_IN)).astype(np.float32), f"s{i}", name, "test")
        for i, name in enumerate(classes)
    )
    slides = read(write_cohort(tmp_path / "cohort", rows))
    path = save_official(tmp_path, "dsmil")
    truth = load(path, negative=negative)
    found, agreement = agree(path, printed(path, truth, slides), slides)
    assert found.backbone.config == truth.config
    assert agreement.taken.difference < 1e-6


def test_a_file_that_loads_only_with_an_option_is_told_by_its_answers(
    tmp_path: Path, cohort: Cohort
) -> None:
    path = save_official(tmp_path, "mean-mil")
    with pytest.raises(CheckpointError, match="MeanMIL or MaxMIL, whose files look alike"):
        load(path)
    table = printed(path, load(path, pooling="max"), cohort)
    found, agreement = agree(path, table, cohort)
    assert found.backbone.architecture == "max-mil"
    assert agreement.taken.options["pooling"] == "max"


@pytest.mark.parametrize(
    ("name", "option", "value"), [("asmil", "heads", 4), ("transmil", "landmarks", 64)]
)
def test_numbers_without_a_list_of_choices_are_tried_last(
    name: str, option: str, value: int, tmp_path: Path, cohort: Cohort
) -> None:
    path = save_official(tmp_path, name)
    truth = load(path, **{option: value})
    found, agreement = agree(path, printed(path, truth, cohort, logits=True), cohort)
    assert found.backbone.config[option] == value
    assert agreement.taken.options[option] == value


def test_a_variant_that_nobody_trains_is_refused_by_how_much(
    tmp_path: Path, cohort: Cohort
) -> None:
    path = save_official(tmp_path, "clam-sb")
    table = printed(path, OFFICIAL["clam-sb"].model().requires_grad_(False), cohort)
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], "s0,0.2,0.3,0.5"]))
    with pytest.raises(CheckpointError) as error:
        agree(path, table, cohort)
    assert str(error.value).startswith(
        f"{path}: does not give the probabilities in clam-sb.csv: of 2 variants the closest (proj"
    )
    off = min(
        abs(load(path, projection_activation=act).predict(whole_bags(cohort)["s0"])
            - torch.tensor([0.2, 0.3, 0.5])).max().item()
        for act in ("relu", "gelu")
    )  # fmt: skip
    assert f"is off by {off:.3g}, at most 0.051 is agreement" in str(error.value)
    assert "CallableBackbone" in error.value.fix


def test_rounded_answers_that_fit_two_variants_are_refused(tmp_path: Path, cohort: Cohort) -> None:
    path = save_official(tmp_path, "clam-mb-ungated")
    table = printed(path, load(path), cohort, digits=1)
    with pytest.raises(
        CheckpointError,
        match=r"agrees with clam-mb-ungated.csv in more than one variant: .* is off by",
    ):
        agree(path, table, cohort)
    found, _ = agree(path, table, cohort, plus_one=False, projection_activation="relu")
    assert found.backbone.config == load(path).config


def test_probabilities_with_four_decimals_are_enough(tmp_path: Path, cohort: Cohort) -> None:
    path = save_official(tmp_path, "transmil")
    truth = load(path, aligned=False)
    _, agreement = agree(path, printed(path, truth, cohort, digits=4), cohort)
    assert agreement.taken.options == {"aligned": False, "projection_activation": "relu"}
    assert agreement.kind == "probabilities"
    assert agreement.taken.difference <= 5.1e-5
    assert agreement.note.startswith(
        "the probabilities in transmil.csv agree on 3 slides (aligned=False, "
        "projection_activation='relu'; largest difference "
    )


def test_columns_may_have_the_names_of_the_classes_in_any_order(
    tmp_path: Path, cohort: Cohort
) -> None:
    path = save_official(tmp_path, "clam-mb-ungated")
    truth = load(path, plus_one=True)
    p = truth.predict(whole_bags(cohort)["s1"]).tolist()
    rows = [["s1.svs", "x", repr(p[1]), repr(p[0])]]
    table = written(tmp_path / "named.csv", ["slide_id", "Y", "b", "a"], *rows)
    _, agreement = agree(path, table, cohort)
    assert agreement.taken.options["plus_one"] is True
    swapped = written(tmp_path / "swapped.csv", ["slide_id", "a", "b"], ["s1", *map(repr, p[::-1])])
    if abs(p[0] - p[1]) > 0.1:
        with pytest.raises(CheckpointError, match="order of the classes"):
            agree(path, swapped, cohort)


def test_one_column_is_enough_for_two_classes(tmp_path: Path, cohort: Cohort) -> None:
    table = written(tmp_path / "p.csv", ["slide_id", "p1"], ["s0", "0.25"])
    expected = read_expected(table, cohort, 2)
    assert expected.answers.tolist() == [[0.75, 0.25]]
    assert [slide.slide_id for slide in expected.slides] == ["s0"]
    assert (expected.kind, expected.rounding) == ("probabilities", 0.005)
    assert math.isclose(expected.tolerance, 0.006)


def test_a_loaded_model_can_be_checked(tmp_path: Path, cohort: Cohort) -> None:
    path = save_official(tmp_path, "clam-sb")
    relu, gelu = load(path), load(path, projection_activation="gelu")
    table = printed(path, relu, cohort)
    assert check_answers(relu, table, cohort).taken.difference < 1e-6
    with pytest.raises(CheckpointError, match="clam-sb: does not give the probabilities in"):
        check_answers(gelu, table, cohort, tolerance=1e-5)


@pytest.mark.parametrize(
    ("columns", "row", "message"),
    [
        (["slide_id", "p0"], ["s0", "1"], "has no column for each of the 2 classes; name them a"),
        (["slide", "p0", "p1"], ["s0", "1", "0"], "has no column 'slide_id'"),
        (["slide_id", "p0", "p1"], ["s0", "x", "0"], "p0 is 'x'; give a number"),
        (["slide_id", "p0", "p1"], ["s0", "nan", "0"], "p0 is 'nan'; give a number"),
        (["slide_id", "p0", "p1"], ["s0", "2.5", "-1"], "holds numbers that are no probabilities"),
        (["slide_id", "p0", "p1"], ["s9", "0.5", "0.5"], "names s9, which the cohort does not"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(
    columns: list[str], row: list[str], message: str, tmp_path: Path, cohort: Cohort
) -> None:
    path = save_official(tmp_path, "clam-mb-ungated")
    with pytest.raises(CohortError, match=message) as error:
        agree(path, written(tmp_path / "e.csv", columns, row), cohort)
    assert "\n" not in str(error.value)


def test_a_model_tells_in_python_what_was_assumed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = save_official(tmp_path, "transmil")
    model = load(path)
    assert model.notes == open_checkpoint(path).facts.notes
    assert any(note.startswith("aligned=True") for note in model.notes)
    said = [record.message for record in caplog.records if record.name == "foci"]
    assert said == [f"{path}: {note}" for note in model.notes]
    assert load(path, aligned=True, landmarks=8, projection_activation="relu").notes == ()
