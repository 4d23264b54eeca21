"""Files with the published tensor names give the numbers of the published code."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from foci.backbones import Backbone, load
from foci.backbones.checkpoints import inspect
from foci.backbones.models.dsmil import DSMIL
from tests.backbones.golden_weights import features, fill

GOLDEN = Path(__file__).parents[1] / "golden"
ABSOLUTE = 1e-6  # the weights pass through float32


def golden(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return content


def filled(shapes: dict[str, Any]) -> dict[str, Tensor]:
    """Every tensor by the formula, under its published name."""
    return {
        key: fill(key, tuple(shape), norm=key.endswith("norm.weight"))
        for key, shape in shapes.items()
    }


def linear(name: str, rows: int, columns: int) -> dict[str, Any]:
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def through_a_file(content: Any, tmp_path: Path, **options: Any) -> Backbone:
    path = tmp_path / "checkpoint.pt"
    torch.save(content, path)
    return load(path, **options).double()


def check(model: Backbone, case: dict[str, Any], d_in: int) -> None:
    logits = model(features(case["n_tiles"], d_in))
    assert logits.tolist() == pytest.approx(case["logits"], abs=ABSOLUTE), case["n_tiles"]


def check_all(model: Backbone, cases: list[dict[str, Any]], d_in: int) -> None:
    assert len(cases) == 4
    for case in cases:
        check(model, case, d_in)


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("acmil", "k5_c3"),
        ("acmil", "k1_c2"),
        ("acmil_mha", "k5_c3"),
        ("acmil_mha", "k1_c2"),
        ("asmil_query", "t4_c3"),
        ("asmil_query", "t1_c2"),
    ],
)
def test_acmil_and_asmil(name: str, variant: str, tmp_path: Path) -> None:
    reference = golden(name)
    state = filled(reference["variants"][variant]["keys"])
    model = through_a_file({"model": state, "epoch": 1}, tmp_path)
    cases = [case for case in reference["cases"] if "scaled" not in case]
    check_all(model, [case for case in cases if case["variant"] == variant], 24)


def clam(gated: bool, hidden: int, rows: int, dropout: float) -> dict[str, Any]:
    last = 3 if dropout else 2
    net = "attention_net.3"
    shapes = linear("attention_net.0", 512, 24)
    if gated:
        shapes |= linear(f"{net}.attention_a.0", hidden, 512)
        shapes |= linear(f"{net}.attention_b.0", hidden, 512)
        return shapes | linear(f"{net}.attention_c", rows, hidden)
    shapes |= linear(f"{net}.module.0", hidden, 512)
    return shapes | linear(f"{net}.module.{last}", rows, hidden)


@pytest.mark.parametrize("name", ["clam_sb", "clam_mb"])
def test_clam(name: str, tmp_path: Path) -> None:
    models: dict[str, Backbone] = {}
    for case in golden(name)["cases"]:
        variant = case["variant"]
        n = variant["n_classes"]
        if str(variant) not in models:
            one = name == "clam_sb"
            shapes = clam(variant["gated"], variant["hidden"], 1 if one else n, variant["dropout"])
            heads = [linear("classifiers", n, 512)] if one else []
            heads += [linear(f"classifiers.{c}", 1, 512) for c in range(0 if one else n)]
            for layer in (*heads, *(linear(f"instance_classifiers.{c}", 2, 512) for c in range(n))):
                shapes |= layer
            models[str(variant)] = through_a_file(filled(shapes), tmp_path)
        check(models[str(variant)], case, 24)
    assert len(models) > 1


def test_attrimil(tmp_path: Path) -> None:
    for n in (2, 3):
        shapes: dict[str, Any] = {"bias": (n,), **linear("adaptor.0", 12, 24)}
        shapes |= linear("adaptor.2", 24, 12)
        for c in range(n):
            shapes |= linear(f"attention_nets.{c}.attention_a.0", 12, 24)
            shapes |= linear(f"attention_nets.{c}.attention_b.0", 12, 24)
            shapes |= linear(f"attention_nets.{c}.attention_c", 1, 12)
            shapes |= linear(f"classifiers.{c}", 1, 24)
        model = through_a_file(filled(shapes), tmp_path)
        cases = golden("attrimil")["cases"]
        check_all(model, [case for case in cases if case["n_classes"] == n], 24)


@pytest.mark.parametrize("gated", [True, False])
def test_abmil(gated: bool, tmp_path: Path) -> None:
    names = {True: ("attention_V.0", "attention_w"), False: ("attention.0", "attention.2")}[gated]
    shapes = linear(names[0], 128, 500) | linear(names[1], 1, 128) | linear("classifier.0", 1, 500)
    if gated:
        shapes |= linear("attention_U.0", 128, 500)
    model = through_a_file(filled(shapes), tmp_path)
    check_all(model, [case for case in golden("abmil")["cases"] if case["gated"] == gated], 500)


def test_mhim_with_attention(tmp_path: Path) -> None:
    models: dict[str, Backbone] = {}
    net = "online_encoder.attention"
    for case in golden("mhim_attn")["cases"]:
        variant = dict(case["variant"])
        if str(variant) not in models:
            shapes = linear("patch_to_emb.0", 512, 1024)
            shapes |= linear("predictor", variant["n_classes"], 512)
            if variant["gated"]:
                shapes |= {f"{net}.attention_{part}.0.weight": (128, 512) for part in "ab"}
                shapes[f"{net}.attention_c.weight"] = (1, 128)
            else:
                shapes[f"{net}.attention.0.weight"] = (128, 512)
                shapes[f"{net}.attention.2.weight"] = (1, 128)
            state = filled(shapes)
            said = {key: variant[key] for key in ("activation", "projection_activation")}
            content = {"model": state, "teacher": None}
            models[str(variant)] = through_a_file(content, tmp_path, **said)
        check(models[str(variant)], case, 1024)
    assert len(models) > 2


@pytest.mark.parametrize("heads", [2, 8])
def test_mhim_with_self_attention(heads: int, tmp_path: Path) -> None:
    reference = golden(f"mhim_selfattn_h{heads}")
    model = through_a_file({"model": filled(reference["keys"])}, tmp_path)
    check(model, reference["cases"][0], 1024)


@pytest.mark.parametrize("version", ["0.0.9", "0.0.11"])
def test_transmil(version: str, tmp_path: Path) -> None:
    reference = golden("transmil")
    state = {f"model.{key}": tensor for key, tensor in filled(reference["keys"]).items()}
    options = {"aligned": False} if version == "0.0.9" else {}
    model = through_a_file({"state_dict": state, "epoch": 7}, tmp_path, **options)
    case = next(case for case in reference["cases"] if case["nystrom"] == version)
    check(model, case, 1024)


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
