"""Every published naming becomes the same classifier again, tensor by tensor."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from foci.backbones import load
from foci.backbones.checkpoints import inspect
from foci.backbones.checkpoints.formats import FORMATS, UNSUPPORTED
from foci.errors import CheckpointError
from tests.backbones.checkpoints.official_files import D_IN, OFFICIAL, Official, save_official
from tests.backbones.checkpoints.test_golden import NAMINGS


@pytest.fixture
def bag() -> torch.Tensor:
    return torch.randn(9, D_IN, generator=torch.Generator().manual_seed(1))


def written(tmp_path: Path, state: dict[str, Any]) -> Path:
    path = tmp_path / "weights.pt"
    torch.save(state, path)
    return path


@pytest.mark.parametrize("official", OFFICIAL.values(), ids=OFFICIAL)
def test_names_and_widths_come_back(official: Official, tmp_path: Path, bag: torch.Tensor) -> None:
    model = official.model()
    path = written(tmp_path, official.state(model))

    loaded = load(path, **official.options)

    assert inspect(path, **official.options).format == official.format
    assert type(loaded) is type(model)
    assert loaded.state_dict().keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    assert torch.equal(loaded(bag), model(bag))
    tokens = model.embed(bag)
    assert torch.equal(loaded.scores(loaded.embed(bag)), model.scores(tokens))


def test_only_one_format_claims_a_file() -> None:
    files = [(official.format, official.state()) for official in OFFICIAL.values()]
    for name, state in [*files, *((model["name"], model["keys"]) for model in NAMINGS)]:
        keys = [re.sub(r"^attention_net\.module\.", "attention_net.", key) for key in state]
        assert [f.name for f in FORMATS if f.recognises(keys)] == [name]


def test_every_format_that_can_be_read_is_tried_here() -> None:
    refused = {"DSMIL of 2022"} | {format_.name for format_ in UNSUPPORTED}
    tried = {official.format for official in OFFICIAL.values()} | {"ABMIL of torchmil"}
    tried |= {model["name"] for model in NAMINGS}
    assert {format_.name for format_ in FORMATS} == tried | refused


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_torchmil_pools_features_and_its_sigmoid_becomes_two_logits(
    gated: bool, activation: str, tmp_path: Path, bag: torch.Tensor
) -> None:
    torch.manual_seed(0)
    state = {
        "pool.fc1.module.weight": torch.randn(6, D_IN),
        "pool.fc1.module.bias": torch.randn(6),
        "pool.fc2.weight": torch.randn(1, 6),
        "classifier.module.weight": torch.randn(1, D_IN),
        "classifier.module.bias": torch.randn(1),
    }
    inner, bias, outer, classifier, offset = state.values()
    hidden = getattr(torch, activation)(bag @ inner.T + bias)
    if gated:
        gate, shift = torch.randn(6, D_IN), torch.randn(6)
        state |= {"pool.fc_gated.module.weight": gate, "pool.fc_gated.module.bias": shift}
        hidden = hidden * torch.sigmoid(bag @ gate.T + shift)
    attention = hidden @ outer[0]
    pooled = torch.softmax(attention, dim=0) @ bag
    probability = torch.sigmoid(pooled @ classifier[0] + offset[0]).item()
    path = written(tmp_path, state)

    loaded = load(path, activation=activation)

    assert loaded(bag)[0] == 0
    assert loaded.predict(bag).tolist() == pytest.approx([1 - probability, probability], abs=1e-6)
    assert loaded.scores(loaded.embed(bag)).tolist() == pytest.approx(attention.tolist(), abs=1e-5)
    assert "one sigmoid output u became the two logits [0, u]" in inspect(path).notes


@pytest.mark.parametrize("name", ["abmil-plain", "abmil-xmil", "transmil", "mhim-v1-gated"])
def test_a_single_output_becomes_two_logits(name: str, tmp_path: Path, bag: torch.Tensor) -> None:
    official = OFFICIAL[name]
    model = official.model()
    head = next(theirs for theirs, ours in official.names.items() if ours == "head")
    state = official.state(model)
    last = {part: state[f"{head}.{part}"][-1:] for part in ("weight", "bias")}
    path = written(tmp_path, {**state, **{f"{head}.{part}": u for part, u in last.items()}})

    logits = load(path)(bag)

    assert logits.tolist() == pytest.approx([0, model(bag)[-1].item()], abs=1e-6)


@pytest.mark.parametrize(
    ("state", "what"),
    [
        (
            {
                "feature_extractor_part1.0.weight": (20, 1, 5, 5),
                "attention_V.0.weight": (6, 12),
                "classifier.0.weight": (1, 12),
            },
            "is the ABMIL for images, with convolutions in front",
        ),
        (
            {
                "feat_ext.0.weight": (8, 12),
                "pool.fc1.module.weight": (6, 8),
                "pool.fc2.weight": (1, 6),
                "classifier.module.weight": (1, 8),
            },
            "has a feature extractor of its own (feat_ext)",
        ),
        (
            {
                "patch_embed.0.weight": (8, 12),
                "blocks.0.attention.res_conv.weight": (4, 1, 33, 1),
                "blocks.0.norm.weight": (8,),
            },
            "is a TransMIL with 1 layers, FOCI's has 2",
        ),
        (
            {"patch_embed.0.weight": (8, 12), "global_attn.attention_c.weight": (1, 6)},
            "lacks classifier.weight",
        ),
        (
            {
                "i_classifier.fc.0.weight": (2, 12),
                "b_classifier.lin.0.weight": (12, 12),
                "b_classifier.fcc.weight": (2, 2, 12),
            },
            "is the DSMIL of early 2022, with a layer b_classifier.lin that FOCI's lacks",
        ),
        (
            {
                "i_classifier.fc.0.weight": (2, 12),
                "b_classifier.q.weight": (6, 12),
                "b_classifier.fcc.weight": (2, 12),
            },
            "b_classifier.fcc.weight has shape [2, 12], not outputs x outputs x width",
        ),
        (
            {"head.0.weight": (8, 12), "head.3.weight": (2, 8)},
            "is MeanMIL or MaxMIL, whose files look alike; give pooling='mean' or pooling='max'",
        ),
        (
            {
                "class_token": (8,),
                "project_features.0.weight": (8, 12),
                "mlp_head.0.weight": (2, 8),
                "transformer.layers.0.0.mhsa.in_proj_weight": (),
            },
            "is ViT of STAMP, but its tensors do not fit (",
        ),
        ({"encoder.weight": (2, 2), "b": (1,)}, "is of no known architecture; its tensors are enc"),
    ],
)
def test_what_foci_cannot_express_is_refused(
    state: dict[str, tuple[int, ...]], what: str, tmp_path: Path
) -> None:
    path = written(tmp_path, {key: torch.zeros(shape) for key, shape in state.items()})
    with pytest.raises(CheckpointError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: {what}")
    assert "\n" not in str(error.value)


def test_an_unknown_file_is_told_what_is_known(tmp_path: Path) -> None:
    path = written(tmp_path, {f"encoder.{i}": torch.zeros(1) for i in range(9)})
    with pytest.raises(CheckpointError) as error:
        load(path)
    assert error.value.what.endswith("encoder.4, encoder.5 and 3 more")
    assert error.value.fix == (
        "give one of TransMIL, Transformer, ViT, CLAM-SB, CLAM-MB, AttriMIL, ACMIL, ASMIL, "
        "MHIM-MIL, ABMIL, Attention_MIL, DSMIL, MIL_fc, MIL_fc_mc, MLP, MeanMIL/MaxMIL, or "
        "wrap the model in foci.backbones.CallableBackbone"
    )


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("abmil", {"heads": 8}, "ABMIL files have no option 'heads'; it has none"),
        ("clam-sb", {"heads": 8}, "CLAM-SB files have no option 'heads'; its options are projec"),
        ("clam-sb", {"projection_activation": "tanh"}, "option projection_activation is 'tanh'; c"),
        ("clam-mb", {"plus_one": 1.5}, "option plus_one is 1.5; choose False or True"),
        ("asmil", {"head": 8}, "ASMIL files have no option 'head'; its options are heads, score"),
        ("asmil", {"heads": 0}, "option heads is 0; choose a positive whole number"),
        ("asmil", {"heads": 5}, "d=16 cannot be split into 5 heads; choose a multiple"),
        ("acmil", {"score": "mean"}, "option score is 'mean'; choose logits or softmax"),
        ("transmil", {"aligned": "no"}, "option aligned is 'no'; choose True or False"),
        ("mhim-v1-gated", {"activation": "silu"}, "option activation is 'silu'; choose relu or"),
    ],
)
def test_options_are_checked(
    name: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = save_official(tmp_path, name)
    with pytest.raises(CheckpointError) as error:
        load(path, **options)
    assert str(error.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    ("name", "options", "notes"),
    [
        ("dsmil-one-output", {}, ["one sigmoid output u became the two logits [0, u]"]),
        (
            "dsmil",
            {},
            [
                "2 outputs are read as one softmax: of independent sigmoids, the probability of "
                "each class given that exactly one is present"
            ],
        ),
        (
            "dsmil-2021",
            {"negative": True, "value": "relu"},
            [
                "2 outputs and a last class without one are read as one softmax: of independent "
                "sigmoids, the probability of each class given that at most one is present"
            ],
        ),
        ("mean-mil", {"pooling": "max"}, ["projection_activation='relu', the default"]),
        ("abmil", {}, []),
        ("clam-sb", {"projection_activation": "gelu"}, []),
        (
            "clam-sb",
            {},
            [
                "projection_activation='relu', as the authors train it (MHIM-MIL's CLAM may have "
                "GELU); the file does not tell it from 'gelu'"
            ],
        ),
        (
            "clam-mb",
            {"projection_activation": "relu"},
            [
                "plus_one=False: a softmax over the tiles, as the authors pool; give "
                "plus_one=True for weights of the ACMIL code, which adds 1 to its denominator"
            ],
        ),
        ("asmil", {}, ["heads=8, as published"]),
        ("asmil", {"heads": 4}, []),
        (
            "transmil",
            {"aligned": True, "projection_activation": "relu"},
            ["landmarks: half the token width, as published"],
        ),
        (
            "transmil-xmil",
            {"landmarks": 8, "attention": "nystrom", "mlp_layers": "applied"},
            ["layers without a bias: mlp_layers.0.0"],
        ),
        (
            "mhim-v1-gated",
            {},
            [
                "activation='relu' in the attention, the authors' default",
                "projection_activation='relu', the default of version 1; the file does not tell "
                "it from 'gelu'",
            ],
        ),
    ],
)
def test_what_no_tensor_shows_is_noted(
    name: str, options: dict[str, Any], notes: list[str], tmp_path: Path
) -> None:
    path = save_official(tmp_path, name)
    assert list(inspect(path, **options).notes) == notes


def test_what_the_earlier_dsmil_pools_is_noted_and_can_be_changed(
    tmp_path: Path, bag: torch.Tensor
) -> None:
    path = save_official(tmp_path, "dsmil-2021")
    assert inspect(path).notes[1].startswith("value='linear', as in the authors' code before Sep")
    assert (load(path)(bag) - load(path, value="relu")(bag)).abs().max() > 1e-3


def test_the_feature_extractor_of_a_dsmil_is_left_out(tmp_path: Path) -> None:
    facts = inspect(save_official(tmp_path, "dsmil-extractor"))
    assert facts.ignored == ("i_classifier.feature_extractor.conv1.weight",)
    assert facts.notes[-1] == (
        "its feature extractor is left out: give the features that it computes"
    )


def test_unused_tensors_are_named(tmp_path: Path) -> None:
    path = save_official(tmp_path, "mhim-v2-merge")
    facts = inspect(path, merge_test=False)
    assert facts.ignored == (
        "merge.norm.weight",
        "merge.attn.to_kv.weight",
        "merge.global_q_mm",
        "merge.global_q",
    )


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("DTFD-MIL", ["dimReduction.fc1.weight", "UClassifier.classifier.fc.weight"]),
        ("DTFD-MIL", ["patch_embed.fc1.0.weight", "attCls.classifier.fc.weight"]),
        ("RRT-MIL", ["patch_to_emb.0.weight", "online_encoder.layers.0.attn.attn.qkv.weight",
                     "predictor.weight"]),
        ("RRT-MIL", ["encoder.layer1.attn.attn.qkv.weight", "encoder.pool_fn.attention.0.weight"]),
        ("WiKG", ["_fc1.0.weight", "W_head.weight", "W_tail.weight", "gate_U.weight"]),
        ("ILRA", ["gab_blocks.0.latent", "pooling.S", "classifier.weight"]),
        ("MambaMIL", ["_fc1.0.weight", "layers.0.1.A_log", "attention.0.weight"]),
        ("AdditiveMIL of xMIL", ["pointer.model.0.weight", "classifier.model.0.weight"]),
        ("MultiModal_Attention_MIL of slideflow", ["encoder_0.0.weight", "prehead_0.1.weight"]),
        ("barspoon of STAMP", ["class_tokens.a", "transformer_decoder.layers.0.norm1.weight"]),
    ],
)  # fmt: skip
def test_a_known_architecture_that_foci_lacks_is_refused_by_name(
    name: str, keys: list[str], tmp_path: Path
) -> None:
    path = written(tmp_path, {key: torch.ones(2, 2) for key in keys})
    with pytest.raises(CheckpointError) as error:
        load(path)
    assert str(error.value) == (
        f"{path}: is {name}, which FOCI does not have; wrap the model: "
        "foci.backbones.CallableBackbone(function, d_in=..., n_classes=...) needs only a function "
        "from features to logits"
    )


SAME_TENSORS = {
    "transmil-xmil": (
        {"mlp_layers": "applied"},
        "is TransMIL of xMIL, with Nystrom or with dot-product attention",
        ("attention", "nystrom", "dot_prod"),
    ),
    "abmil-mhim-v2": (
        {},
        "is ABMIL of MHIM-MIL v2, with --pos sincos or without",
        ("pos", "none", "sincos"),
    ),
    "mhim-v2-merge": (
        {},
        "is MHIM-MIL v2 with merging, in evaluation too (--merge_test) or not",
        ("merge_test", False, True),
    ),
}


@pytest.mark.parametrize("name", SAME_TENSORS)
def test_two_models_with_the_same_tensors_are_refused_until_somebody_says_which(
    name: str, tmp_path: Path, bag: torch.Tensor
) -> None:
    """Of the two, FOCI has one: a file of the other would be another classifier."""
    given, what, (option, ours, other) = SAME_TENSORS[name]
    path = save_official(tmp_path, name)
    with pytest.raises(CheckpointError) as unsaid:
        load(path, **given)
    assert str(unsaid.value) == (
        f"{path}: {what}: the tensors do not show it; give {option}={ours!r} if it is (or "
        "--expect); if not, wrap the model in foci.backbones.CallableBackbone"
    )
    with pytest.raises(CheckpointError) as refused:
        load(path, **given, **{option: other})
    assert f"{option}={other!r} is not supported; wrap the model" in str(refused.value)
    assert load(path, **given, **{option: ours})(bag).isfinite().all()


def test_layers_that_one_branch_of_xmil_applies_must_be_decided(
    tmp_path: Path, bag: torch.Tensor
) -> None:
    path = save_official(tmp_path, "transmil-xmil")
    with pytest.raises(CheckpointError, match="mlp_layers='applied' or mlp_layers='discarded'"):
        load(path, attention="nystrom")
    both = [load(path, attention="nystrom", mlp_layers=own) for own in ("applied", "discarded")]
    assert (both[0](bag) - both[1](bag)).abs().max() > 0.1


@pytest.mark.parametrize("entry", ["ema", "EMA_model"])
def test_asmil_with_its_anchor_is_refused_by_name(entry: str, tmp_path: Path) -> None:
    state = OFFICIAL["asmil"].state()
    contents = [{"model": state, entry: state}, {"ema": state}]
    for content in contents:
        path = written(tmp_path, content)
        with pytest.raises(CheckpointError, match=r"is ASMIL with an anchor \('\w+'\)"):
            load(path)


def test_stamp_with_alibi_is_sent_to_a_function_with_coordinates(tmp_path: Path) -> None:
    keys = ["class_token", "project_features.0.weight",
            "transformer.layers.0.0.mhsa.attentions.0.bias_scale"]  # fmt: skip
    path = written(tmp_path, {key: torch.ones(2, 2) for key in keys})
    with pytest.raises(CheckpointError, match=r"ViT with ALiBi.*CallableBackbone, with coords=Tr"):
        load(path)


def test_a_layer_without_a_bias_has_a_bias_of_zero(tmp_path: Path, bag: torch.Tensor) -> None:
    model = OFFICIAL["clam-sb"].model()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") and not name.startswith("projection"):
                parameter.zero_()
    state = OFFICIAL["clam-sb"].state(model)
    kept = {key: one for key, one in state.items() if key.endswith("weight") or one.any()}
    assert len(kept) < len(state)
    path = written(tmp_path, kept)
    assert torch.equal(load(path)(bag), model(bag))
    assert any(note.startswith("layers without a bias: ") for note in inspect(path).notes)


def test_the_four_parts_of_dtfd_mil_are_known_too(tmp_path: Path) -> None:
    parts = ("classifier", "dim_reduction", "attention", "att_classifier")
    path = written(tmp_path, {part: {"weight": torch.ones(2)} for part in parts})
    with pytest.raises(CheckpointError, match="is DTFD-MIL, which FOCI does not have; wrap"):
        load(path)
