"""Files with the published tensor names give the numbers of the published code.

Those of ABMIL, ACMIL, ASMIL, AttriMIL, CLAM, MHIM-MIL and TransMIL are read so, in float64, in the
tests of these models.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

from foci.backbones import Backbone, load
from foci.backbones.checkpoints import inspect
from foci.backbones.models.dsmil import DSMIL
from foci.testing import check_backbone
from tests.backbones.golden_weights import features, filled, golden

ABSOLUTE = 1e-6  # the weights pass through float32


def through_a_file(content: Any, tmp_path: Path, **options: Any) -> Backbone:
    path = tmp_path / "checkpoint.pt"
    torch.save(content, path)
    return load(path, **options).double()


@pytest.mark.parametrize("variant", ["mhim_v1_encoder", "mhim_v1", "mhim_v2"])
def test_dsmil_of_the_mhim_code(variant: str, tmp_path: Path) -> None:
    reference = golden("dsmil")
    state = filled(reference["variants"][variant]["keys"])
    model = through_a_file({"model": state, "teacher": None}, tmp_path)
    cases = [case for case in reference["cases"] if case["variant"] == variant]
    assert len(cases) == 2
    for case in cases:
        logits = model(features(case["n_tiles"], model.d_in))
        assert logits.tolist() == pytest.approx(case["outputs"], abs=ABSOLUTE)


@pytest.mark.parametrize("variant", [v for v in golden("dsmil")["variants"] if "mhim" not in v])
def test_dsmil(variant: str, tmp_path: Path) -> None:
    """Outputs, attention to the critical tiles, and for one output the published probability."""
    reference = golden("dsmil")
    state = filled(reference["variants"][variant]["keys"])
    model = through_a_file(state, tmp_path)
    assert isinstance(model, DSMIL)
    cases = [case for case in reference["cases"] if case["variant"] == variant]
    assert len(cases) == 4
    for case in cases:
        x = features(case["n_tiles"], 24)
        attention = torch.softmax(model.attend(x), dim=0).T
        assert model.outputs(x).tolist() == pytest.approx(case["outputs"], abs=ABSOLUTE)
        assert attention.tolist() == [pytest.approx(row, abs=ABSOLUTE) for row in case["attention"]]
        if len(case["outputs"]) == 1:
            assert model.predict(x)[1].item() == pytest.approx(case["sigmoids"][0], abs=ABSOLUTE)
        odds = [p / (1 - p) for p in case["sigmoids"]] + [1.0] * (len(case["outputs"]) == 1)
        largest = max(odds) / sum(odds)
        assert model.predict(x).max().item() == pytest.approx(largest, abs=ABSOLUTE)


@pytest.mark.parametrize("variant", golden("instance")["variants"])
def test_mean_max_and_mil_fc(variant: str, tmp_path: Path) -> None:
    reference = golden("instance")
    state = filled(reference["variants"][variant]["keys"])
    pooling, _, rest = variant.partition("_")
    options = {} if pooling == "mil" else {"pooling": pooling}
    options |= {"projection_activation": "gelu"} if "gelu" in rest else {}
    model = through_a_file(state, tmp_path, **options)
    cases = [case for case in reference["cases"] if case["variant"] == variant]
    assert len(cases) == 4
    for case in cases:
        x = features(case["n_tiles"], 24)
        want = [0.0] * (len(case["logits"]) == 1) + case["logits"]
        assert model(x).tolist() == pytest.approx(want, abs=ABSOLUTE)
        if pooling == "mil":
            tiles = case["tile_probabilities"]
            deciding = [row[1] if len(row) == 2 else max(row) for row in tiles]
            scores = torch.sigmoid(model.scores(model.embed(x)))
            assert model.predict(x).tolist() == pytest.approx(case["probabilities"], abs=ABSOLUTE)
            assert scores.tolist() == pytest.approx(deciding, abs=ABSOLUTE)


NAMINGS = golden("namings")["cases"]


@pytest.mark.parametrize("model", NAMINGS, ids=lambda model: f"{model['name']} {model['options']}")
def test_other_projects_and_their_variants(model: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    torch.save(filled(model["keys"]), path)
    backbone = load(path, **model["options"])
    assert inspect(path, **model["options"]).format == model["name"]
    for case in model["cases"]:
        logits = backbone.double()(features(case["n_tiles"], model["d_in"]))
        if len(case["logits"]) == 1:  # a sigmoid output u is [0, u] here
            assert logits[0] == 0
            logits = logits[1:]
        assert logits.tolist() == pytest.approx(case["logits"], abs=ABSOLUTE), case["n_tiles"]


LATER = ("Transformer of MIL-Lab", "ViT of STAMP", "MLP of STAMP", "DSMIL of MIL-Lab",
         "DSMIL of torchmil")  # fmt: skip


@pytest.mark.parametrize("model", [one for one in NAMINGS if one["name"] in LATER],
                         ids=lambda model: f"{model['name']} {model['options']}")  # fmt: skip
def test_variants_that_no_preset_has_keep_the_contract(
    model: dict[str, Any], tmp_path: Path
) -> None:
    """Masks, gates and closed forms of a LayerNorm after pooling, of deep heads and the like."""
    check_backbone(through_a_file(filled(model["keys"]), tmp_path, **model["options"]))


def test_variants_under_the_same_names_differ_by_more_than_rounding(tmp_path: Path) -> None:
    """What the notes are for: the default of another project is another classifier."""
    differences = {}
    for name, options in (
        ("CLAM-SB", {"projection_activation": "relu"}),
        ("CLAM-MB", {"plus_one": False}),
        ("TransMIL", {"projection_activation": "relu"}),
        ("ABMIL of the MHIM-MIL code", {"projection_activation": "relu"}),
    ):
        model = next(one for one in NAMINGS if one["name"] == name)
        case = model["cases"][0]
        wrong = through_a_file(filled(model["keys"]), tmp_path, **options)
        logits = wrong(features(case["n_tiles"], model["d_in"]))
        differences[name] = max(
            abs(a - b) for a, b in zip(logits.tolist(), case["logits"], strict=True)
        )
    assert all(off > 0.01 for off in differences.values()), differences
