"""FOCI's own folders and everybody else's files are loaded alike, and strictly.

Strictly: nothing missing, nothing left over, every shape right, every number finite.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from foci import backbones
from foci.backbones import load
from foci.backbones.checkpoints import inspect
from foci.errors import CheckpointError, FociError
from foci.testing import check_backbone
from tests.backbones.checkpoints.official_files import D_IN, OFFICIAL, save_official
from tests.backbones.checkpoints.test_golden import NAMINGS
from tests.backbones.golden_weights import features, filled
from tests.makers.cohorts import Row, write_cohort

PAGE = Path(__file__).parents[3] / "docs" / "checkpoints.md"
FIX = "give weights of an unmodified model, or wrap it in foci.backbones.CallableBackbone"


def own(tmp_path: Path) -> Path:
    return backbones.save(OFFICIAL["clam-sb"].model(), tmp_path / "clam")


@pytest.mark.parametrize("inside", ["", "weights.safetensors", "backbone.json"])
def test_a_folder_of_foci_is_loaded_through_any_of_its_files(inside: str, tmp_path: Path) -> None:
    model, folder = OFFICIAL["clam-sb"].model(), own(tmp_path)

    loaded = load(folder / inside)

    assert loaded.config == model.config
    assert torch.equal(loaded.state_dict()["head.weight"], model.state_dict()["head.weight"])
    facts = inspect(folder / inside)
    assert (facts.path, facts.format, facts.architecture) == (folder, "FOCI", "clam-sb")
    assert (facts.config, facts.notes, facts.ignored) == (model.config, (), ())
    assert facts.parameters == sum(p.numel() for p in model.parameters())


def test_weights_safetensors_of_another_project_is_a_file_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_file(OFFICIAL["clam-sb"].state(), path)
    assert inspect(path).format == "CLAM-SB"


def test_a_folder_has_no_options(tmp_path: Path) -> None:
    folder = own(tmp_path)
    with pytest.raises(CheckpointError, match=r"clam: has no option 'heads'; backbone.json"):
        load(folder, heads=8)


@pytest.mark.parametrize("foreign", [True, False])
def test_what_is_loaded_is_frozen_and_keeps_its_claims(foreign: bool, tmp_path: Path) -> None:
    model = load(save_official(tmp_path, "clam-sb") if foreign else own(tmp_path))
    assert not model.training
    assert not any(p.requires_grad for p in model.parameters())
    assert not any(p.is_meta for p in model.parameters())
    check_backbone(model)


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    path = save_official(tmp_path, "clam-sb")
    torch.manual_seed(3)
    want = torch.rand(2)
    torch.manual_seed(3)
    load(path)
    assert torch.equal(torch.rand(2), want)


def test_the_facts_of_a_file(tmp_path: Path) -> None:
    path = save_official(tmp_path, "clam-sb-svm")
    facts = inspect(path)
    assert facts.path == path
    assert (facts.format, facts.architecture) == ("CLAM-SB", "clam-sb")
    assert facts.config == OFFICIAL["clam-sb"].model().config
    assert facts.parameters == sum(p.numel() for p in OFFICIAL["clam-sb"].model().parameters())
    assert facts.ignored == ("instance_loss_fn.labels",)


@pytest.mark.parametrize(
    ("name", "expect"),
    [
        ("clam-sb", "clam-sb"),
        ("transmil", "transmil"),
        ("transmil", "transmil-nystrom"),
        ("asmil", "asmil"),
        ("mhim-v1-gated", "mhim-mil"),
    ],
)
def test_an_expected_classifier_is_let_in(name: str, expect: str, tmp_path: Path) -> None:
    load(save_official(tmp_path, name), expect=expect, d_in=D_IN)


@pytest.mark.parametrize("foreign", [True, False])
def test_another_classifier_is_refused_by_its_name(foreign: bool, tmp_path: Path) -> None:
    path = save_official(tmp_path, "clam-sb") if foreign else own(tmp_path)
    family = "CLAM-SB" if foreign else "FOCI"
    with pytest.raises(CheckpointError) as error:
        load(path, expect="transmil")
    assert str(error.value) == (
        f"{path}: is {family} (clam-sb) for features of width 12, not transmil; "
        "give another checkpoint"
    )


@pytest.mark.parametrize("foreign", [True, False])
def test_another_feature_width_is_refused(foreign: bool, tmp_path: Path) -> None:
    path = save_official(tmp_path, "clam-sb") if foreign else own(tmp_path)
    with pytest.raises(CheckpointError, match="features of width 12, not 1536; give features of"):
        load(path, expect="clam-sb", d_in=1536)


def test_an_unknown_expectation_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FociError, match=r"clamsb: is not a known backbone; did you mean 'clam-sb'"):
        load(save_official(tmp_path, "clam-sb"), expect="clamsb")


def clam() -> dict[str, Tensor]:
    return OFFICIAL["clam-sb"].state()


def saved(tmp_path: Path, state: dict[str, Tensor]) -> Path:
    path = tmp_path / "s_0_checkpoint.pt"
    torch.save(state, path)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as error:
        load(path)
    with pytest.raises(CheckpointError) as inspected:
        inspect(path)
    assert str(inspected.value) == str(error.value)
    return str(error.value)


LAST = "attention_net.3.attention_c"
REFUSED: dict[str, tuple[dict[str, Tensor | None], str]] = {
    "missing": ({f"{LAST}.weight": None}, f"is CLAM-SB, but lacks {LAST}.weight; {FIX}"),
    "unexpected": (
        {"extra.weight": torch.zeros(1)},
        f"is CLAM-SB, but also holds extra.weight; {FIX}",
    ),
    "many names are cut short": (
        {f"extra.{i}": torch.zeros(1) for i in range(20)},
        "is CLAM-SB, but also holds extra.0, extra.1, extra.2, extra.3, extra.4, extra.5 and 14 "
        f"more; {FIX}",
    ),
    "input width": (
        {"attention_net.3.attention_b.0.weight": torch.zeros(6, 9)},
        "is CLAM-SB, but attention_net.3.attention_b.0.weight has shape [6, 9], which does not fit "
        f"[6, 8]; {FIX}",
    ),
    "output width": (
        {f"{LAST}.weight": torch.zeros(2, 6)},
        f"is CLAM-SB, but {LAST}.weight has shape [2, 6], which does not fit [1, 6]; {FIX}",
    ),
    "bias": (
        {"classifiers.bias": torch.zeros(4)},
        f"is CLAM-SB, but classifiers.bias has shape [4], which does not fit [3]; {FIX}",
    ),
    "no matrix": (
        {"attention_net.0.weight": torch.zeros(8)},
        "attention_net.0.weight has shape [8]; give weights of an unmodified model",
    ),
    "NaN": (
        {"classifiers.bias": torch.tensor([0.0, torch.nan, 0.0])},
        "classifiers.bias holds NaN or Inf; take an earlier checkpoint",
    ),
    "Inf": (
        {"classifiers.bias": torch.tensor([0.0, torch.inf, 0.0])},
        "classifiers.bias holds NaN or Inf; take an earlier checkpoint",
    ),
    "one class": (
        {"classifiers.weight": torch.zeros(1, 8), "classifiers.bias": torch.zeros(1)},
        "is CLAM-SB with 1 class; give a classifier of two or more classes",
    ),
}
"""Changed tensors of a CLAM-SB, None for those left out, and why the file is refused."""


@pytest.mark.parametrize(("changes", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_tensor_that_does_not_fit_is_named_as_in_the_file(
    changes: dict[str, Tensor | None], reason: str, tmp_path: Path
) -> None:
    state = {**clam(), **changes}
    path = saved(tmp_path, {key: tensor for key, tensor in state.items() if tensor is not None})
    assert refusal(path) == f"{path}: {reason}"


def test_layers_that_cannot_be_joined_are_refused(tmp_path: Path) -> None:
    layers = OFFICIAL["mil-fc-mc-earlier"].state()
    path = saved(tmp_path, {**layers, "classifiers.1.weight": torch.zeros(8)})
    what = "is MIL_fc_mc of CLAM before April 2024, but its tensors do not fit (Tensors must have"
    assert refusal(path).startswith(f"{path}: {what}")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_become_float32_and_are_noted(dtype: torch.dtype, tmp_path: Path) -> None:
    state = {key: tensor.to(dtype) for key, tensor in clam().items()}
    path = saved(tmp_path, state)

    loaded = load(path).state_dict()

    name = str(dtype).removeprefix("torch.")
    notes = inspect(path, projection_activation="relu").notes
    assert notes == (f"stored as {name}, used as float32",)
    assert loaded["head.weight"].dtype == torch.float32
    assert torch.equal(loaded["head.weight"], state["classifiers.weight"].float())


def test_the_code_on_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for file in ("s_0_checkpoint.pt", "clam.pt"):
        torch.save(OFFICIAL["clam-sb-svm"].state(), file)
    torch.save(OFFICIAL["transmil"].state(), "transmil.ckpt")
    rng = np.random.default_rng(0)
    bags = {name: rng.normal(size=(9, D_IN)).astype(np.float32) for name in ("s0", "s1", "s2")}
    write_cohort(tmp_path, [Row(n, x, n, "ab"[n == "s1"], "test") for n, x in bags.items()])
    own = load("clam.pt", projection_activation="gelu")
    answers = [own.predict(torch.from_numpy(x)).tolist() for x in bags.values()]
    lines = [",".join([name, *map(str, p)]) for name, p in zip(bags, answers, strict=True)]
    Path("expected.csv").write_text("\n".join(["slide_id,p0,p1,p2", *lines]))
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) >= 2
    assert isinstance(names["model"], backbones.Backbone)
    assert names["model"].config["projection_activation"] == "gelu"


# Hugging Face folders, and what files say of themselves

TRANSFORMER = [one for one in NAMINGS if one["name"] == "Transformer of MIL-Lab"][1]
"""Of MIL-Lab, with four heads, which no tensor shows."""

CONFIG = {"model_type": "transformer", "in_dim": 12, "num_classes": 3, "num_heads": 4,
          "encoder": "uni_v2", "id2label": {"2": "c", "0": "a", "1": "b"}}  # fmt: skip


def hugging_face(folder: Path, **changes: Any) -> Path:
    """What ``save_pretrained`` of MIL-Lab's transformer writes."""
    folder.mkdir(parents=True)
    state = {f"model.{key}": one.float() for key, one in filled(TRANSFORMER["keys"]).items()}
    save_file(state, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    return folder


@pytest.mark.parametrize("form", ["folder", "weights", "cache"])
def test_a_hugging_face_folder_says_classes_encoder_and_heads(form: str, tmp_path: Path) -> None:
    commit = "0f" * 20
    folder = hugging_face(tmp_path / "models--lab--mil" / "snapshots" / commit)
    cache = tmp_path / "models--lab--mil"
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(commit)
    path = {"folder": folder, "weights": folder / "model.safetensors", "cache": cache}[form]

    model, facts = load(path), inspect(path)

    case = TRANSFORMER["cases"][1]
    assert model(features(7, 12).float()).tolist() == pytest.approx(case["logits"], abs=1e-5)
    assert (facts.format, facts.classes) == ("Transformer of MIL-Lab", ("a", "b", "c"))
    assert (facts.encoder, facts.config["heads"]) == ("uni_v2", 4)
    assert not any(note.startswith("heads=") for note in facts.notes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"in_dim": 1024}, "names features of width 1024, but its tensors have 12; give the set"),
        ({"num_classes": 2}, "names classes: 2, but its tensors have 3; give the settings and the"),
        ({"id2label": {"0": "a", "1": "b"}}, "names classes: 2, but its tensors have 3; give the"),
        ({"task": "detection"}, "is Transformer of MIL-Lab for detection, which FOCI cannot au"),
        ({"num_heads": 5}, "transmil d=16 is not a multiple of heads=5; change one"),
    ],
)
def test_a_config_that_does_not_fit_its_weights_is_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = hugging_face(tmp_path / "hf", **changes)
    assert refusal(folder).startswith(f"{folder}: {message}")


def test_folders_that_are_no_checkpoints_say_what_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert refusal(folder) == (
        f"{folder}: holds neither backbone.json (foci train) nor config.json (Hugging Face); give "
        "the checkpoint file itself"
    )
    (folder / "config.json").write_text("{}")
    assert refusal(folder).startswith(f"{folder}: holds config.json and no model.safetensors or p")
    (folder / "snapshots").mkdir()
    assert "does not say which snapshot is the newest" in refusal(folder)


def test_an_unknown_model_is_refused_by_the_name_it_gives_itself(tmp_path: Path) -> None:
    folder = tmp_path / "titan"
    folder.mkdir()
    save_file({"vision.blocks.0.qkv": torch.zeros(2)}, folder / "model.safetensors")
    (folder / "config.json").write_text('{"architectures": ["Titan"], "model_type": "titan"}')
    assert refusal(folder).startswith(
        f"{folder}: calls itself Titan and is of no known architecture; its tensors are vision.bl"
    )
    torch.save({"state_dict": {"a": torch.zeros(2)}, "hyper_parameters": {"model_class": Path}},
               tmp_path / "own.ckpt")  # fmt: skip
    assert "calls itself Path and is of no known architecture" in refusal(tmp_path / "own.ckpt")


STAMP = next(one for one in NAMINGS if one["name"] == "ViT of STAMP" and one["options"])
"""Of STAMP, with four heads and two classes."""


def lightning(path: Path, **settings: Any) -> Path:
    """A ``.ckpt`` as Lightning writes it for STAMP, with a metric beside the model."""
    state = {f"model.{key}": one.float() for key, one in filled(STAMP["keys"]).items()}
    state["valid_auroc.confmat"] = torch.zeros(5)
    content = {"state_dict": state, "hyper_parameters": settings, "epoch": 3}
    torch.save(content, path)
    return path


def test_hyper_parameters_of_lightning_are_read(tmp_path: Path) -> None:
    said = {"task": "classification", "categories": ["wt", "mut"], "n_heads": 4, "dim_input": 12}
    path = lightning(tmp_path / "m.ckpt", **said, supported_features="tile", model_class=Path)
    logits = load(path)(features(7, 12).float())
    assert logits.tolist() == pytest.approx(STAMP["cases"][1]["logits"], abs=1e-5)
    assert inspect(path).classes == ("wt", "mut")
    assert "the file names its classes: wt, mut" in inspect(path).notes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"supported_features": "patient"}, "is ViT of STAMP on features of a whole patient; give"),
        ({"categories": ["a", "b", "c"]}, "names classes: 3, but its tensors have 2; give the set"),
    ],
)
def test_hyper_parameters_that_rule_a_file_out(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = lightning(tmp_path / "model.ckpt", **settings)
    assert refusal(path).startswith(f"{path}: {message}")
