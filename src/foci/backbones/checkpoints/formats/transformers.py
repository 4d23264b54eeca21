"""Checkpoints of classifiers whose tiles attend to each other: TransMIL, DSMIL and MHIM-MIL.

TransMIL with Nyström attention of the authors (also Lightning), MIL-Lab, MHIM-MIL's code and xMIL;
DSMIL of its authors, current and earlier, and of the MHIM-MIL code; MHIM-MIL versions 1 and 2, with
attention, self-attention or DSMIL as encoder.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from foci.backbones.checkpoints.formats.base import (
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
    second_layer,
    two_logits,
    widths,
    with_biases,
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
        "heads": state.rows(names["layer1.attention.residual"]),
        **options,
    }
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
    outputs = (f"{layer}.attn.to_out.0" for layer in layers)
    state = with_biases(state, "_fc1.0", *outputs, "_fc2")
    mapping = _read_transmil(state, options, {"projection.0": "_fc1.0"}, "_fc2", layers)
    note = (
        "attention: Nystrom, xMIL's default; its attention='dot_prod' has the same tensors and is "
        "not supported"
    )
    # xMIL computes these layers and does not use what they return
    return replace(mapping, ignored=("mlp_layers.*",), notes=(*mapping.notes, note))


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
        options={
            "landmarks": _LANDMARKS,
            "projection_activation": projection_activation(
                "gelu", "from the configuration shipped with MHIM-MIL v2"
            ),
        },
    ),
    CheckpointFormat(
        "TransMIL of xMIL",
        has=("_fc1.0.weight", "translayers.0.attn.res_conv.weight"),
        read=_xmil,
        options={"landmarks": _LANDMARKS},
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


DSMIL_FORMATS = (
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
        options={
            **_DSMIL_OPTIONS,
            "projection_activation": RELU_BY_DEFAULT,
        },
    ),
    CheckpointFormat(
        "DSMIL of the MHIM-MIL code, v2",
        has=("feature.0.weight", "i_classifier.weight", "b_classifier.fcc.weight"),
        read=_dsmil("i_classifier", "b_classifier", "feature.0"),
        options={
            **_DSMIL_OPTIONS,
            "projection_activation": Option(
                "gelu",
                "projection_activation='gelu', from the configuration shipped with version 2",
                ("gelu", "relu"),
            ),
        },
    ),
)

# MHIM-MIL

_ENCODER = "online_encoder"
_MERGING = (
    "merge.* left out: merging of tiles belongs to training; a model that was evaluated with "
    "merge_test predicts differently"
)


def _read_mhim(
    state: StateDict, architecture: str, projection: str, names: dict[str, str], settings: Options
) -> KeyMapping:
    state, n_classes, notes = two_logits(state, "predictor")
    config = {**widths(state, projection), "n_classes": n_classes, **settings}
    names = {**names, "projection.0": projection, "head": "predictor"}
    notes += (_MERGING,) * any(key.startswith("merge.") for key in state)
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


def _version(name: str, projection: str, activation: Option) -> tuple[CheckpointFormat, ...]:
    signature = (f"{projection}.weight", "predictor.weight")
    return (
        CheckpointFormat(
            name,
            has=(*signature, f"{_ENCODER}.attention.*"),
            read=_attention(projection),
            options={"activation": _ACTIVATION, "projection_activation": activation},
        ),
        CheckpointFormat(
            f"{name} with self-attention",
            has=(*signature, f"{_ENCODER}.cls_token"),
            read=_self_attention(projection),
            options={"landmarks": _LANDMARKS, "projection_activation": activation},
        ),
        CheckpointFormat(
            f"{name} with DSMIL",
            has=(*signature, f"{_ENCODER}.b_classifier.*"),
            read=_dsmil(
                f"{_ENCODER}.i_classifier.0",
                f"{_ENCODER}.b_classifier",
                projection,
                ignored=("predictor.*", "merge.*"),
            ),
            options={**_DSMIL_OPTIONS, "projection_activation": activation},
        ),
    )


MHIM_FORMATS = (
    *_version(
        "MHIM-MIL v1", "patch_to_emb.0", projection_activation("relu", "the default of version 1")
    ),
    *_version(
        "MHIM-MIL v2",
        "feature.0",
        projection_activation("gelu", "from the configuration shipped with version 2"),
    ),
)
