"""Checkpoints of classifiers whose tiles attend to each other: TransMIL, DSMIL and MHIM-MIL.

TransMIL with Nyström attention of the authors (also Lightning), MIL-Lab, MHIM-MIL's code, xMIL and
torchmil; plain transformers of MIL-Lab and STAMP; DSMIL of its authors, current and earlier, of the
MHIM-MIL code, MIL-Lab and torchmil; MHIM-MIL versions 1 and 2, with attention, self-attention or
DSMIL as encoder.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from foci.backbones.checkpoints.formats.base import (
    MHIM_V1,
    MHIM_V2,
    MIL_LAB_PROJECTION,
    ONE_OUTPUT,
    RELU_BY_DEFAULT,
    WRAP,
    CheckpointFormat,
    KeyMapping,
    Option,
    Options,
    Reader,
    StateDict,
    gated_names,
    projection_activation,
    projection_names,
    refusing,
    require_option,
    second_layer,
    two_logits,
    widths,
)

_LANDMARKS = Option(
    None, "landmarks: half the token width, as published", tries=(256, 128, 64, 512)
)


def _nystrom_names(
    layers: tuple[str, str], *, prefix: str = "", attention: str = "attn", position: str
) -> dict[str, str]:
    """Key names of class token, two Nyström layers, the position encoding between, and norm."""
    names = {"cls": f"{prefix}cls_token", "norm": f"{prefix}norm"}
    for ours, theirs in zip(("layer1", "layer2"), layers, strict=True):
        net = f"{prefix}{theirs}.{attention}"
        names |= {
            f"{ours}.norm": f"{prefix}{theirs}.norm",
            f"{ours}.attention.qkv": f"{net}.to_qkv",
            f"{ours}.attention.output": f"{net}.to_out.0",
            f"{ours}.attention.residual": f"{net}.res_conv",
        }
    kernels = {"conv7": "proj", "conv5": "proj1", "conv3": "proj2"}
    return names | {f"position.{k}": f"{prefix}{position}.{v}" for k, v in kernels.items()}


def _read_transmil(
    state: StateDict,
    options: Options,
    projection: dict[str, str],
    head: str,
    layers: tuple[str, str] = ("layer1", "layer2"),
    attention: str = "attn",
) -> KeyMapping:
    names = _nystrom_names(layers, attention=attention, position="pos_layer")
    state, n_classes, notes = two_logits(state, head)
    config = {
        **widths(state, projection["projection.0"]),
        "n_classes": n_classes,
        "projection_layers": len(projection),
        **options,
    }
    if "heads" not in options:
        config["heads"] = state.rows(names["layer1.attention.residual"])
    names |= {**projection, "head": head}
    return KeyMapping("transmil-nystrom", config, names, state, notes=notes)


def _two_layers(state: StateDict, block: str) -> tuple[str, str]:
    """Names of the blocks, of which TransMIL has two."""
    layers = state.count(f"{block}.{{}}.norm")
    if layers != 2:
        raise state.refused(f"is a TransMIL with {layers} layers, FOCI's has 2", WRAP)
    return f"{block}.0", f"{block}.1"


def _mil_lab(state: StateDict, options: Options) -> KeyMapping:
    layers = _two_layers(state, "blocks")
    projection = projection_names(state, MIL_LAB_PROJECTION)
    return _read_transmil(state, options, projection, "classifier", layers, "attention")


def _xmil(state: StateDict, options: Options) -> KeyMapping:
    layers = _two_layers(state, "translayers")
    what = "is TransMIL of xMIL, with Nystrom or with dot-product attention"
    require_option(state, options, "attention", "nystrom", what)
    own = {"landmarks": options["landmarks"]}
    mapping = _read_transmil(state, own, {"projection.0": "_fc1.0"}, "_fc2", layers)
    hidden = state.count("mlp_layers.{}.0")
    if hidden and options["mlp_layers"] is None:
        what = "is TransMIL of xMIL with mlp_layers, which its branch xmil-journal applies and main"
        fix = "give mlp_layers='applied' or mlp_layers='discarded' (or --expect)"
        raise state.refused(f"{what} computes and discards", fix)
    if hidden and options["mlp_layers"] == "applied":
        names = {key: name for key, name in mapping.names.items() if key != "head"}
        names |= {f"head.{2 * i}": f"mlp_layers.{i}.0" for i in range(hidden)}
        names[f"head.{2 * hidden}"] = "_fc2"
        return replace(mapping, config={**mapping.config, "head_layers": hidden}, names=names)
    return replace(mapping, ignored=("mlp_layers.*",))


def _transmil_torchmil(state: StateDict, options: Options) -> KeyMapping:
    """Without the convolution on the values and the layer behind the heads: 0 and the identity."""
    if any(key.startswith("feat_ext.") for key in state):
        raise state.refused("has a feature extractor of its own (feat_ext)", WRAP)
    layers = state.count("layers.{}.att_module.qkv_nn")
    if layers != 2 or "layers.0.mlp_module.0.weight" in state:
        what = f"is TransMIL of torchmil with {layers} layers or with use_mlp"
        raise state.refused(f"{what}, FOCI's has 2 without", WRAP)
    d, heads = state["cls_token"].shape[-1], options["heads"]
    if d % heads:
        raise state.refused(f"has {d} columns, no multiple of heads={heads}", "give its heads")
    absent = {f"layers.{i}.to_out.0.weight": torch.eye(d) for i in range(2)}
    absent |= {f"layers.{i}.res_conv.weight": torch.zeros(heads, 1, 33, 1) for i in range(2)}
    if "fc1.weight" not in state:
        absent["fc1.weight"] = torch.eye(d)
    own = {"landmarks": options["landmarks"], "projection_activation": "linear", "heads": heads}
    full = state.replaced(absent)
    mapping = _read_transmil(full, own, {"projection.0": "fc1"}, "classifier")
    names = dict(mapping.names)
    for i, ours in enumerate(("layer1", "layer2")):
        names[f"{ours}.norm"] = f"layers.{i}.norm1"
        names[f"{ours}.attention.qkv"] = f"layers.{i}.att_module.qkv_nn"
        names[f"{ours}.attention.output"] = f"layers.{i}.to_out.0"
        names[f"{ours}.attention.residual"] = f"layers.{i}.res_conv"
    return replace(mapping, names=names, ignored=("layers.?.norm2.*",))


_ALIGNED = Option(
    True,
    "aligned=True: every token gets its own row of the attention, as in nystrom-attention "
    "0.0.11 and later; give aligned=False for weights of 0.0.9, which the authors pin",
    (True, False),
)

TRANSMIL_FORMATS = (
    CheckpointFormat(
        "TransMIL",
        has=("_fc1.0.weight", "layer1.attn.res_conv.weight"),
        read=partial(_read_transmil, projection={"projection.0": "_fc1.0"}, head="_fc2"),
        options={
            "aligned": _ALIGNED,
            "landmarks": _LANDMARKS,
            "projection_activation": projection_activation(
                "relu", "as the authors train it (MHIM-MIL's TransMIL may have GELU)"
            ),
        },
    ),
    CheckpointFormat(
        "TransMIL of MIL-Lab",
        has=("patch_embed.0.weight", "blocks.0.attention.res_conv.weight"),
        read=_mil_lab,
        options={"aligned": _ALIGNED, "landmarks": _LANDMARKS},
    ),
    CheckpointFormat(
        "TransMIL of the MHIM-MIL code",
        has=("feature.0.weight", "layer1.attn.res_conv.weight", "classifier.weight"),
        read=partial(_read_transmil, projection={"projection.0": "feature.0"}, head="classifier"),
        options={"landmarks": _LANDMARKS, "projection_activation": MHIM_V2},
    ),
    CheckpointFormat(
        "TransMIL of xMIL",
        has=("_fc1.0.weight", "translayers.0.attn.res_conv.weight"),
        read=_xmil,
        options={
            "attention": Option(None, choices=("nystrom", "dot_prod")),
            "mlp_layers": Option(None, choices=("applied", "discarded")),
            "landmarks": _LANDMARKS,
        },
    ),
    CheckpointFormat(
        "TransMIL of torchmil",
        has=("cls_token", "pos_layer.proj.weight", "layers.0.att_module.qkv_nn.weight"),
        read=_transmil_torchmil,
        options={
            "heads": Option(4, "heads=4, torchmil's default", tries=(8, 2, 1, 16)),
            "landmarks": _LANDMARKS,
        },
    ),
)

# Plain transformers


def _read_encoder(
    state: StateDict,
    heads: int,
    projection: dict[str, str],
    layer: str,
    inside: dict[str, str],
    outside: dict[str, str],
    **settings: Any,
) -> KeyMapping:
    """A pre-norm transformer that is read out at its class token.

    ``layer`` has a ``{}`` for its number; the feed-forward block inside of it may be absent. torch
    keeps the projections to queries, keys and values of an attention in one tensor.
    """
    shape, depth = widths(state, projection["projection.0"]), 0
    names, split, joined = {**projection, **outside}, dict[str, torch.Tensor](), list[str]()
    while f"{(at := layer.format(depth))}.{inside['attention']}.in_proj_weight" in state:
        net = f"{at}.{inside['attention']}"
        for key in (f"{net}.in_proj_weight", f"{net}.in_proj_bias"):
            if key in state:
                part = key.rpartition("_")[2]
                split[f"{net}.q.{part}"] = state[key][: shape["d"]]
                split[f"{net}.kv.{part}"] = state[key][shape["d"] :]
                joined.append(key)
        ours = f"layers.{depth}"
        names |= {f"{ours}.query": f"{net}.q", f"{ours}.key_value": f"{net}.kv"}
        names[f"{ours}.output"] = f"{net}.out_proj"
        names |= {f"{ours}.{mine}": f"{at}.{one}" for mine, one in inside.items()}
        depth += 1
    state, n_classes, notes = two_logits(state, outside["head"])
    state = state.replaced({**split, outside["cls"]: state[outside["cls"]].flatten()}, joined)
    widen = f"{layer.format(0)}.{inside['widen']}"
    config = {
        **shape,
        "n_classes": n_classes,
        "heads": heads,
        "depth": depth,
        "hidden": state.rows(widen) if f"{widen}.weight" in state else None,
        "projection_layers": len(projection),
        **settings,
    }
    return KeyMapping("transmil", config, names, state, notes=notes)


def _transformer_mil_lab(state: StateDict, options: Options) -> KeyMapping:
    return _read_encoder(
        state,
        options["heads"],
        projection_names(state, MIL_LAB_PROJECTION),
        "blocks.{}",
        {
            "attention_norm": "norm",
            "attention": "attention",
            "feed_forward_norm": "norm2",
            "widen": "mlp.0",
            "narrow": "mlp.3",
        },
        {"cls": "cls_token", "norm": "norm", "head": "classifier"},
        activation="relu",
        activate_twice=True,
    )


def _transformer_stamp(state: StateDict, options: Options) -> KeyMapping:
    if any(".mhsa.attentions." in key for key in state):
        what = "is STAMP's ViT with ALiBi, which reads coordinates"
        raise state.refused(what, f"{WRAP}, with coords=True")
    return _read_encoder(
        state,
        options["heads"],
        {"projection.0": "project_features.0"},
        "transformer.layers.{}",
        {
            "attention_norm": "0.norm",
            "attention": "0.mhsa",
            "feed_forward_norm": "1.0",
            "widen": "1.1",
            "narrow": "1.4",
        },
        {"cls": "class_token", "norm": "transformer.norm", "head": "mlp_head.0"},
        activation="gelu",
        projection_activation="gelu",
    )


_ENCODER_HEADS = Option(8, "heads=8, the default", tries=(4, 16, 2, 1))

TRANSFORMER_FORMATS = (
    CheckpointFormat(
        "Transformer of MIL-Lab",
        has=("patch_embed.0.weight", "blocks.0.attention.in_proj_weight", "cls_token"),
        read=_transformer_mil_lab,
        options={"heads": _ENCODER_HEADS},
    ),
    CheckpointFormat(
        "ViT of STAMP",
        has=("class_token", "project_features.0.weight", "transformer.layers.0.0.mhsa.*"),
        read=_transformer_stamp,
        options={"heads": _ENCODER_HEADS},
    ),
)

# DSMIL

_DSMIL_OPTIONS = {
    "negative": Option(False, choices=(False, True)),
    "value": Option(None, choices=("linear", "relu")),
}
"""What the tensors of any DSMIL leave open."""

_SEVERAL = (
    "{} outputs are read as one softmax: of independent sigmoids, the probability of each class "
    "given that exactly one is present"
)
_EARLIER_VALUE = (
    "value='linear', as in the authors' code before September 2022; or 'relu' (passing_v)"
)
_WITH_NEGATIVE = (
    "{} outputs and a last class without one are read as one softmax: of independent sigmoids, the "
    "probability of each class given that at most one is present"
)


def _dsmil(
    tiles: str, bag: str, projection: str | None = None, ignored: tuple[str, ...] = ()
) -> Reader:
    """Reader of a DSMIL with these layer names, the projection in front of both classifiers.

    The bag classifier has ``q``, perhaps ``v``, and ``fcc`` inside.
    """

    def read(state: StateDict, options: Options) -> KeyMapping:
        head, query = f"{bag}.fcc", f"{bag}.q"
        deep = f"{query}.0.weight" in state
        names = {"tile_classifier": tiles, "head": head}
        names |= {"query.0": f"{query}.0", "query.2": f"{query}.2"} if deep else {"query": query}
        value, notes = "token", list[str]()
        if f"{bag}.v.1.weight" in state:
            names["value.0"] = f"{bag}.v.1"
            value = options["value"] or ("relu" if deep else "linear")
            notes += [_EARLIER_VALUE] * (options["value"] is None and not deep)
        outputs = state.rows(head)
        negative = options["negative"] or outputs == 1
        config: dict[str, Any] = {**options, "d_in": state.columns(tiles)}
        if projection is not None:
            names["projection.0"] = projection
            config |= widths(state, projection)
            config["projection_bias"] = f"{projection}.bias" in state
        config |= {
            "n_classes": outputs + negative,
            "negative": negative,
            "query": state.rows(names["query.2" if deep else "query"]),
            "query_hidden": state.rows(names["query.0"]) if deep else None,
            "value": value,
        }
        classes = (_WITH_NEGATIVE if negative else _SEVERAL).format(outputs)
        note = ONE_OUTPUT if outputs == 1 else classes
        weight = state[f"{head}.weight"]
        if weight.dim() != 3:
            what = f"{head}.weight has shape {list(weight.shape)}, not outputs x outputs x width"
            raise state.refused(what, "give weights of an unmodified model")
        # the convolution over all pooled tokens, [K, K, d], is a linear layer [K, K d]
        flat = state.replaced({f"{head}.weight": weight.flatten(start_dim=1)})
        return KeyMapping("dsmil", config, names, flat, ignored, (note, *notes))

    return read


def _official(state: StateDict, options: Options) -> KeyMapping:
    plain = "i_classifier.fc.weight" in state  # with the feature extractor inside
    tiles = "i_classifier.fc" if plain else "i_classifier.fc.0"
    mapping = _dsmil(tiles, "b_classifier")(state, options)
    extractor = "i_classifier.feature_extractor."
    if not any(key.startswith(extractor) for key in state):
        return mapping
    note = "its feature extractor is left out: give the features that it computes"
    return replace(mapping, ignored=(f"{extractor}*",), notes=(*mapping.notes, note))


def _dsmil_mil_lab(state: StateDict, options: Options) -> KeyMapping:
    projection = projection_names(state, MIL_LAB_PROJECTION)
    tiles, query, value = "i_classifier.inst_classifier", "b_classifier.q", "b_classifier.v.1"
    names = {**projection, "tile_classifier": tiles, "query": query, "value.0": value}
    names |= {"norm": "b_classifier.norm", "head": "classifier"}
    config = {
        **widths(state, projection["projection.0"]),
        "n_classes": state.rows("classifier"),
        "query": state.rows(query),
        "query_hidden": None,
        "value": "linear",
        "norm": True,
        "average": True,
        "projection_layers": len(projection),
    }
    flat = {"classifier.weight": state["classifier.weight"].flatten(start_dim=1)}
    ignored = ("b_classifier.fcc.*",)  # created and never applied
    return KeyMapping("dsmil", config, names, state.replaced(flat), ignored)


def _dsmil_torchmil(state: StateDict, options: Options) -> KeyMapping:
    if any(key.startswith("feat_ext.") for key in state):
        raise state.refused("has a feature extractor of its own (feat_ext)", WRAP)
    deep, value = "q_nn.0.weight" in state, "v_nn.1.weight" in state
    names = {"tile_classifier": "inst_classifier", "head": "bag_classifier"}
    names |= {"query.0": "q_nn.0", "query.2": "q_nn.2"} if deep else {"query": "q_nn"}
    names |= {"value.0": "v_nn.1"} if value else {}
    config = {
        "d_in": state.columns("inst_classifier"),
        "n_classes": 2,
        "negative": True,
        "query": state.rows("q_nn.2" if deep else "q_nn"),
        "query_hidden": state.rows("q_nn.0") if deep else None,
        "value": "relu" if value else "token",
        **options,
    }
    return KeyMapping("dsmil", config, names, state, notes=(ONE_OUTPUT,))


DSMIL_FORMATS = (
    CheckpointFormat(
        "DSMIL of MIL-Lab",
        has=("patch_embed.0.weight", "i_classifier.inst_classifier.weight", "classifier.weight"),
        read=_dsmil_mil_lab,
    ),
    CheckpointFormat(
        "DSMIL of torchmil",
        has=("inst_classifier.weight", "bag_classifier.weight", "q_nn.*"),
        read=_dsmil_torchmil,
        options={
            "average": Option(
                True,
                "average=True: both streams, as predict() of torchmil; forward() gives one",
                (True, False),
            ),
        },
    ),
    CheckpointFormat(
        "DSMIL",
        has=("i_classifier.fc.*", "b_classifier.fcc.weight"),
        lacks=("i_classifier.embed.0.weight", "b_classifier.lin.*"),
        read=_official,
        options=_DSMIL_OPTIONS,
    ),
    CheckpointFormat(
        "DSMIL of 2022",
        has=("i_classifier.fc.*", "b_classifier.fcc.weight", "b_classifier.lin.*"),
        read=refusing(
            "is the DSMIL of early 2022, with a layer b_classifier.lin that FOCI's lacks", WRAP
        ),
    ),
    CheckpointFormat(
        "DSMIL of the MHIM-MIL code, v1",
        has=("i_classifier.embed.0.weight", "i_classifier.fc.0.weight", "b_classifier.fcc.weight"),
        read=_dsmil("i_classifier.fc.0", "b_classifier", "i_classifier.embed.0"),
        options={**_DSMIL_OPTIONS, "projection_activation": RELU_BY_DEFAULT},
    ),
    CheckpointFormat(
        "DSMIL of the MHIM-MIL code, v2",
        has=("feature.0.weight", "i_classifier.weight", "b_classifier.fcc.weight"),
        read=_dsmil("i_classifier", "b_classifier", "feature.0"),
        options={**_DSMIL_OPTIONS, "projection_activation": MHIM_V2},
    ),
)

# MHIM-MIL

_ENCODER = "online_encoder"
_MERGE_TEST = {"merge_test": Option(None, choices=(False, True))}


def _without_merging(read: Reader) -> Reader:
    """Read a model of version 2 that merges tiles in training, if it does not in evaluation."""

    def checked(state: StateDict, options: Options) -> KeyMapping:
        if any(key.startswith("merge.") for key in state):
            what = "is MHIM-MIL v2 with merging, in evaluation too (--merge_test) or not"
            require_option(state, options, "merge_test", False, what)
        return read(state, {name: one for name, one in options.items() if name != "merge_test"})

    return checked


def _read_mhim(
    state: StateDict, architecture: str, projection: str, names: dict[str, str], settings: Options
) -> KeyMapping:
    state, n_classes, notes = two_logits(state, "predictor")
    config = {**widths(state, projection), "n_classes": n_classes, **settings}
    names = {**names, "projection.0": projection, "head": "predictor"}
    return KeyMapping(architecture, config, names, state, ("merge.*",), notes)


def _attention(projection: str) -> Reader:
    net = f"{_ENCODER}.attention"

    def read(state: StateDict, options: Options) -> KeyMapping:
        names = gated_names("attention", net)
        gated = f"{names['attention.V']}.weight" in state
        if not gated:
            last = second_layer(state, f"{net}.attention")
            names = {"attention.V": f"{net}.attention.0", "attention.w": last}
        settings = {
            "hidden": state.rows(names["attention.V"]),
            "gated": gated,
            "attention_bias": f"{names['attention.V']}.bias" in state,
            "projection_bias": f"{projection}.bias" in state,
            **options,
        }
        return _read_mhim(state, "mhim", projection, names, settings)

    return read


def _self_attention(projection: str) -> Reader:
    names = _nystrom_names(("layer1", "layer2"), prefix=f"{_ENCODER}.", position="pos_embedding")

    def read(state: StateDict, options: Options) -> KeyMapping:
        heads = state.rows(names["layer1.attention.residual"])
        settings = {
            "heads": heads,
            "head_width": state.columns(names["layer1.attention.output"]) // heads,
            "landmarks": options["landmarks"],
            "activation": options["projection_activation"],
        }
        return _read_mhim(state, "mhim-selfattn", projection, names, settings)

    return read


_ACTIVATION = Option(
    "relu", "activation='relu' in the attention, the authors' default", ("relu", "gelu", "tanh")
)


def _version(
    name: str, projection: str, activation: Option, more: dict[str, Option]
) -> tuple[CheckpointFormat, ...]:
    signature = (f"{projection}.weight", "predictor.weight")
    dsmil = _dsmil(
        f"{_ENCODER}.i_classifier.0",
        f"{_ENCODER}.b_classifier",
        projection,
        ignored=("predictor.*", "merge.*"),
    )
    options = {"projection_activation": activation, **more}
    return (
        CheckpointFormat(
            name,
            has=(*signature, f"{_ENCODER}.attention.*"),
            read=_without_merging(_attention(projection)),
            options={"activation": _ACTIVATION, **options},
        ),
        CheckpointFormat(
            f"{name} with self-attention",
            has=(*signature, f"{_ENCODER}.cls_token"),
            read=_without_merging(_self_attention(projection)),
            options={"landmarks": _LANDMARKS, **options},
        ),
        CheckpointFormat(
            f"{name} with DSMIL",
            has=(*signature, f"{_ENCODER}.b_classifier.*"),
            read=_without_merging(dsmil),
            options={**_DSMIL_OPTIONS, **options},
        ),
    )


MHIM_FORMATS = (
    *_version("MHIM-MIL v1", "patch_to_emb.0", MHIM_V1, {}),
    *_version("MHIM-MIL v2", "feature.0", MHIM_V2, _MERGE_TEST),
)
