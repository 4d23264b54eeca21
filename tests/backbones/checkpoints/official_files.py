"""Every published naming: a small classifier under the tensor names of its project, by short name.

Written from the projects' code, independently of the formats that FOCI reads.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foci.backbones import ARCHITECTURES, Backbone

State = dict[str, Tensor]
Change = Callable[[State], State]

D_IN = 12
SMALL = {"d": 8, "hidden": 6}


@dataclass(frozen=True)
class Official:
    """One naming: the format that should be found, our class and widths, their name -> ours."""

    format: str
    architecture: str
    widths: dict[str, Any]
    names: dict[str, str]
    n_classes: int = 2
    options: dict[str, Any] = field(default_factory=dict)
    change: Change = lambda state: state

    def model(self) -> Backbone:
        torch.manual_seed(0)
        model = ARCHITECTURES[self.architecture](D_IN, self.n_classes, **self.widths).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape) / 2)
        return model

    def state(self, model: Backbone | None = None) -> State:
        """Our tensors under the published names."""
        theirs = {ours: name for name, ours in self.names.items()}
        state = {}
        for key, tensor in (model or self.model()).state_dict().items():
            module, _, part = key.rpartition(".")
            state[theirs[key] if key in theirs else f"{theirs[module]}.{part}"] = tensor
        return self.change(state)


def save_official(folder: Path, name: str) -> Path:
    """The file that the project's code would have written."""
    path = folder / f"{name}.pt"
    torch.save(OFFICIAL[name].state(), path)
    return path


def gated_names(theirs: str, ours: str = "attention") -> dict[str, str]:
    return {
        f"{theirs}.attention_a.0": f"{ours}.V",
        f"{theirs}.attention_b.0": f"{ours}.U",
        f"{theirs}.attention_c": f"{ours}.w",
    }


def renamed(names: dict[str, str], old: str, new: str) -> dict[str, str]:
    return {theirs.replace(old, new): ours for theirs, ours in names.items()}


def with_tensors(**extra: Tensor) -> Change:
    return lambda state: {**state, **extra}


# TransMIL and MHIM-MIL


def nystrom_names(layers: tuple[str, str], position: str, prefix: str = "") -> dict[str, str]:
    """Layers by the name of their attention."""
    names = {f"{prefix}cls_token": "cls", f"{prefix}norm": "norm"}
    for ours, theirs in zip(("layer1", "layer2"), layers, strict=True):
        names |= {
            f"{prefix}{theirs.rpartition('.')[0]}.norm": f"{ours}.norm",
            f"{prefix}{theirs}.to_qkv": f"{ours}.attention.qkv",
            f"{prefix}{theirs}.to_out.0": f"{ours}.attention.output",
            f"{prefix}{theirs}.res_conv": f"{ours}.attention.residual",
        }
    kernels = {"proj": "conv7", "proj1": "conv5", "proj2": "conv3"}
    return names | {f"{prefix}{position}.{k}": f"position.{v}" for k, v in kernels.items()}


TRANSMIL = {
    **nystrom_names(("layer1.attn", "layer2.attn"), "pos_layer"),
    "_fc1.0": "projection.0",
    "_fc2": "head",
}
TRANSMIL_MIL_LAB = {
    **nystrom_names(("blocks.0.attention", "blocks.1.attention"), "pos_layer"),
    "patch_embed.0": "projection.0",
    "classifier": "head",
}
MHIM_SELFATTN = {
    **nystrom_names(("layer1.attn", "layer2.attn"), "pos_embedding", "online_encoder."),
    "patch_to_emb.0": "projection.0",
    "predictor": "head",
}
MHIM_GATED = {
    "patch_to_emb.0": "projection.0",
    **gated_names("online_encoder.attention"),
    "predictor": "head",
}
MHIM_UNGATED = {
    "patch_to_emb.0": "projection.0",
    "online_encoder.attention.attention.0": "attention.V",
    "online_encoder.attention.attention.2": "attention.w",
    "predictor": "head",
}
TRANSFORMERS = {
    "transmil": Official("TransMIL", "transmil-nystrom", {"d": 16, "heads": 8}, TRANSMIL, 3),
    "transmil-mil-lab": Official(
        "TransMIL of MIL-Lab", "transmil-nystrom", {"d": 16, "heads": 4}, TRANSMIL_MIL_LAB, 3
    ),
    "transmil-mil-lab-2-layers": Official(
        "TransMIL of MIL-Lab",
        "transmil-nystrom",
        {"d": 16, "heads": 4, "projection_layers": 2},
        {**TRANSMIL_MIL_LAB, "patch_embed.3": "projection.3"},
    ),
    "transmil-mhim": Official(
        "TransMIL of the MHIM-MIL code",
        "transmil-nystrom",
        {"d": 16, "heads": 8, "projection_activation": "gelu"},
        renamed(renamed(TRANSMIL, "_fc1", "feature"), "_fc2", "classifier"),
    ),
    "transmil-xmil": Official(
        "TransMIL of xMIL",
        "transmil-nystrom",
        {"d": 16, "heads": 8},
        renamed(renamed(TRANSMIL, "layer1.", "translayers.0."), "layer2.", "translayers.1."),
        options={"attention": "nystrom", "mlp_layers": "discarded"},
        change=with_tensors(**{"mlp_layers.0.0.weight": torch.ones(16, 16)}),
    ),
    "mhim-v1-gated": Official("MHIM-MIL v1", "mhim", SMALL, MHIM_GATED),
    "mhim-v1-ungated-dropout": Official(
        "MHIM-MIL v1",
        "mhim",
        {**SMALL, "gated": False},
        renamed(MHIM_UNGATED, "attention.2", "attention.3"),
    ),
    "mhim-v1-bias": Official("MHIM-MIL v1", "mhim", {**SMALL, "attention_bias": True}, MHIM_GATED),
    "mhim-v1-selfattn-2-heads": Official(
        "MHIM-MIL v1 with self-attention",
        "mhim-selfattn",
        {"d": 16, "heads": 2, "head_width": 2, "landmarks": 4, "activation": "gelu"},
        MHIM_SELFATTN,
        options={"landmarks": 4, "projection_activation": "gelu"},
    ),
    "mhim-v2-merge": Official(
        "MHIM-MIL v2",
        "mhim",
        {**SMALL, "gated": False, "projection_activation": "gelu"},
        renamed(MHIM_UNGATED, "patch_to_emb", "feature"),
        options={"merge_test": False},
        change=with_tensors(
            **{
                "merge.norm.weight": torch.ones(8),
                "merge.attn.to_kv.weight": torch.ones(16, 8),
                "merge.global_q_mm": torch.ones(1, 1, 8),
                "merge.global_q": torch.ones(1, 1, 8),
            }
        ),
    ),
    "mhim-v2-selfattn": Official(
        "MHIM-MIL v2 with self-attention",
        "mhim-selfattn",
        {"d": 16, "heads": 4, "head_width": 2, "activation": "gelu"},
        renamed(MHIM_SELFATTN, "patch_to_emb", "feature"),
        3,
    ),
}

# CLAM and AttriMIL


def instance_names(n: int) -> dict[str, str]:
    return {f"instance_classifiers.{c}": f"instance_classifiers.{c}" for c in range(n)}


def mb_names(attention: dict[str, str], n: int) -> dict[str, str]:
    heads = {f"classifiers.{c}": f"heads.{c}" for c in range(n)}
    return {"attention_net.0": "projection.0", **attention, **heads, **instance_names(n)}


def attrimil_names(n: int) -> dict[str, str]:
    names = {"bias": "beta", "adaptor.0": "adaptor.0", "adaptor.2": "adaptor.2"}
    for c in range(n):
        names |= gated_names(f"attention_nets.{c}", f"attention.{c}")
        names[f"classifiers.{c}"] = f"scorers.{c}"
    return names


MIL_LAB = {"patch_embed.0": "projection.0", **gated_names("global_attn"), "classifier": "head"}
CLAM_SB = {
    "attention_net.0": "projection.0",
    **gated_names("attention_net.3"),
    "classifiers": "head",
    **instance_names(3),
}
CLAM_UNGATED = {
    "attention_net.0": "projection.0",
    "attention_net.3.module.0": "attention.V",
    "attention_net.3.module.3": "attention.w",
    "classifiers": "head",
    **instance_names(2),
}

CLAM = {
    "clam-sb": Official("CLAM-SB", "clam-sb", SMALL, CLAM_SB, 3),
    "clam-sb-svm": Official(
        "CLAM-SB",
        "clam-sb",
        SMALL,
        CLAM_SB,
        3,
        change=with_tensors(**{"instance_loss_fn.labels": torch.tensor([0, 1])}),
    ),
    "clam-sb-index-2": Official("CLAM-SB", "clam-sb", SMALL, renamed(CLAM_SB, "net.3", "net.2"), 3),
    "clam-sb-module": Official(
        "CLAM-SB", "clam-sb", SMALL, renamed(CLAM_SB, "attention_net.", "attention_net.module."), 3
    ),
    "clam-sb-ungated-no-dropout": Official(
        "CLAM-SB",
        "clam-sb",
        {**SMALL, "gated": False},
        renamed(renamed(CLAM_UNGATED, "module.3", "module.2"), "net.3", "net.2"),
    ),
    "clam-sb-ungated-module": Official(
        "CLAM-SB",
        "clam-sb",
        {**SMALL, "gated": False},
        renamed(CLAM_UNGATED, "attention_net.", "attention_net.module."),
    ),
    "clam-mb": Official(
        "CLAM-MB", "clam-mb", SMALL, mb_names(gated_names("attention_net.3"), 3), 3
    ),
    "clam-mb-ungated": Official(
        "CLAM-MB",
        "clam-mb",
        {**SMALL, "gated": False},
        mb_names(
            {
                "attention_net.3.module.0": "attention.V",
                "attention_net.3.module.2": "attention.w",
            },
            2,
        ),
    ),
    "clam-mil-lab": Official(
        "CLAM-SB of MIL-Lab",
        "clam-sb",
        SMALL,
        {**MIL_LAB, **instance_names(2)},
    ),
    "attrimil": Official("AttriMIL", "attrimil", {}, attrimil_names(3), 3),
    "attrimil-alignment": Official(
        "AttriMIL", "attrimil", {"d": 8}, {"alignment.0": "projection.0", **attrimil_names(2)}
    ),
}

# ACMIL and ASMIL


def queried_names(theirs: str, ours: str, parts: str) -> dict[str, str]:
    layers = {f"{theirs}.{part}_proj": f"{ours}.{part}" for part in parts}
    return {**layers, f"{theirs}.out_proj": f"{ours}.out", f"{theirs}.layer_norm": f"{ours}.norm"}


ACMIL_GATED = {
    "attention.attention_V.0": "attention.V",
    "attention.attention_U.0": "attention.U",
    "attention.attention_weights": "attention.w",
}
ACMIL = {
    "dimreduction.fc1": "projection.0",
    **ACMIL_GATED,
    **{f"classifier.{r}.fc": f"branch_heads.{r}" for r in range(4)},
    "Slide_classifier.fc": "head",
}
ACMIL_MHA = {
    "q": "branches.queries",
    "dimreduction.fc1": "projection.0",
    **queried_names("sub_attention.0", "branches.attention.0", "qkv"),
    **queried_names("sub_attention.1", "branches.attention.1", "qkv"),
    **queried_names("bag_attention", "bag", "v"),
    "classifier.0.fc": "branch_heads.0",
    "classifier.1.fc": "branch_heads.1",
    "Slide_classifier.fc": "head",
}

BRANCHES = {
    "acmil": Official("ACMIL", "acmil", {**SMALL, "branches": 4}, ACMIL, 3),
    "acmil-mha-2-heads": Official(
        "ACMIL with multi-head attention",
        "acmil-mha",
        {"d": 16, "branches": 2, "heads": 2},
        ACMIL_MHA,
        options={"heads": 2},
    ),
    "asmil": Official(
        "ASMIL",
        "asmil-query",
        {"d": 16, "branches": 2},
        ACMIL_MHA | {"cls": "class_query"} | queried_names("bag_attention", "bag", "qkv"),
        change=with_tensors(
            **{"dimreduction.bn.weight": torch.ones(16), "dimreduction.bn.bias": torch.zeros(16)}
        ),
    ),
}

# ABMIL, as other projects name its tensors

PLAIN = {"attention.0": "attention.V", "attention.2": "attention.w"}
ILSE = {"attention_V.0": "attention.V", "attention_U.0": "attention.U", "classifier.0": "head"}
MHIM_ABMIL = {"feature.0": "projection.0", **PLAIN, "classifier": "head"}
XMIL = {"linear_layers.0.0": "projection.0", **PLAIN, "classifier": "head"}

ABMIL = {
    "abmil": Official(
        "ABMIL",
        "abmil",
        {"d": None, "hidden": 6},
        {**ILSE, "attention_w": "attention.w"},
        3,
    ),
    "abmil-2018-projected": Official(
        "ABMIL",
        "abmil",
        SMALL,
        {
            **ILSE,
            "feature_extractor_part2.0": "projection.0",
            "attention_weights": "attention.w",
        },
    ),
    "abmil-plain": Official(
        "ABMIL without gate",
        "abmil",
        {"d": None, "hidden": 6, "gated": False},
        {**PLAIN, "classifier.0": "head"},
    ),
    "abmil-acmil": Official(
        "ABMIL of the ACMIL code",
        "abmil",
        {**SMALL, "projection_bias": False},
        {"dimreduction.fc1": "projection.0", **ACMIL_GATED, "classifier.fc": "head"},
        3,
    ),
    "abmil-mhim": Official(
        "ABMIL of the MHIM-MIL code",
        "abmil",
        {**SMALL, "gated": False},
        renamed(MHIM_ABMIL, "classifier", "classifier.0"),
    ),
    "abmil-mhim-v2": Official(
        "ABMIL of the MHIM-MIL v2 code",
        "abmil",
        {**SMALL, "gated": False, "projection_activation": "gelu"},
        MHIM_ABMIL,
        3,
        options={"pos": "none"},
    ),
    "abmil-mhim-v2-gated": Official(
        "Gated ABMIL of the MHIM-MIL v2 code",
        "abmil",
        {**SMALL, "projection_activation": "gelu"},
        {
            "feature.0": "projection.0",
            "attention_a.0": "attention.V",
            "attention_b.0": "attention.U",
            "attention_c": "attention.w",
            "classifier.0": "head",
        },
        3,
    ),
    "abmil-mil-lab-2-layers": Official(
        "ABMIL of MIL-Lab",
        "abmil",
        {**SMALL, "projection_layers": 2},
        {**MIL_LAB, "patch_embed.3": "projection.3"},
        3,
    ),
    "abmil-mil-lab": Official("ABMIL of MIL-Lab", "abmil", SMALL, MIL_LAB, 3),
    "abmil-mil-lab-ungated": Official(
        "ABMIL of MIL-Lab",
        "abmil",
        {**SMALL, "gated": False},
        {
            "patch_embed.0": "projection.0",
            "global_attn.module.0": "attention.V",
            "global_attn.module.3": "attention.w",
            "classifier": "head",
        },
    ),
    "abmil-xmil": Official("ABMIL of xMIL", "abmil", {**SMALL, "gated": False}, XMIL),
}

# DSMIL, mean and max pooling, MIL_fc

DEEP = {"query": 6, "query_hidden": 7}
LINEAR = {"query": 6, "query_hidden": None}
DSMIL = {
    "i_classifier.fc.0": "tile_classifier",
    "b_classifier.q.0": "query.0",
    "b_classifier.q.2": "query.2",
    "b_classifier.fcc": "head",
}
LINEAR_DSMIL = {
    "i_classifier.fc.0": "tile_classifier",
    "b_classifier.q": "query",
    "b_classifier.fcc": "head",
}
VALUE = {"b_classifier.v.1": "value.0"}
MHIM = {
    "online_encoder.i_classifier.0": "tile_classifier",
    **{f"online_encoder.{theirs}": ours for theirs, ours in [*DSMIL.items()][1:]},
    "online_encoder.b_classifier.v.1": "value.0",
}
TWO_LAYERS = {"fc.0": "projection.0", "classifier": "head"}
MEAN_MAX = {"head.0": "projection.0", "head.3": "head"}


def convolution(outputs: int) -> Change:
    """The last layer of a DSMIL as it is published: outputs x outputs x width."""

    def change(state: State) -> State:
        key = next(key for key in state if key.endswith("b_classifier.fcc.weight"))
        return {**state, key: state[key].view(outputs, outputs, -1)}

    return change


def extractor(state: State) -> State:
    more = {"i_classifier.feature_extractor.conv1.weight": torch.zeros(4, 3, 7, 7)}
    return with_tensors(**more)(convolution(2)(state))


def unused_predictor(state: State) -> State:
    more = {"predictor.weight": torch.zeros(2, 8), "predictor.bias": torch.zeros(2)}
    return with_tensors(**more)(convolution(2)(state))


def one_layer_per_class(state: State) -> State:
    """The head of MIL_fc_mc before April 2024."""
    apart = {
        f"classifiers.{c}.{part}": state[f"classifiers.{part}"][c : c + 1]
        for c in range(3)
        for part in ("weight", "bias")
    }
    return {key: state[key] for key in state if not key.startswith("classifiers.")} | apart


INSTANCE = {
    "dsmil": Official("DSMIL", "dsmil", DEEP, DSMIL, change=convolution(2)),
    "dsmil-one-output": Official(
        "DSMIL", "dsmil", {**DEEP, "negative": True}, DSMIL, change=convolution(1)
    ),
    "dsmil-negative": Official(
        "DSMIL",
        "dsmil",
        {**DEEP, "negative": True},
        DSMIL,
        3,
        options={"negative": True},
        change=convolution(2),
    ),
    "dsmil-passing-v": Official(
        "DSMIL", "dsmil", {**DEEP, "value": "relu"}, {**DSMIL, **VALUE}, 3, change=convolution(3)
    ),
    "dsmil-linear-query": Official("DSMIL", "dsmil", LINEAR, LINEAR_DSMIL, change=convolution(2)),
    "dsmil-2021": Official(
        "DSMIL",
        "dsmil",
        {**LINEAR, "value": "linear"},
        {**LINEAR_DSMIL, **VALUE},
        change=convolution(2),
    ),
    "dsmil-extractor": Official(
        "DSMIL", "dsmil", DEEP, renamed(DSMIL, "fc.0", "fc"), change=extractor
    ),
    "dsmil-mhim-v1": Official(
        "DSMIL of the MHIM-MIL code, v1",
        "dsmil",
        {**LINEAR, "d": 8},
        {**LINEAR_DSMIL, "i_classifier.embed.0": "projection.0"},
        change=convolution(2),
    ),
    "dsmil-mhim-v2": Official(
        "DSMIL of the MHIM-MIL code, v2",
        "dsmil",
        {**DEEP, "d": 8, "value": "relu", "projection_activation": "gelu"},
        {**renamed(DSMIL, ".fc.0", ""), **VALUE, "feature.0": "projection.0"},
        change=convolution(2),
    ),
    "mhim-v1-dsmil": Official(
        "MHIM-MIL v1 with DSMIL",
        "dsmil",
        {**DEEP, "d": 8, "value": "relu"},
        {**MHIM, "patch_to_emb.0": "projection.0"},
        change=unused_predictor,
    ),
    "mhim-v2-dsmil": Official(
        "MHIM-MIL v2 with DSMIL",
        "dsmil",
        {**DEEP, "d": 8, "value": "relu", "projection_activation": "gelu"},
        {**MHIM, "feature.0": "projection.0"},
        change=unused_predictor,
    ),
    "mil-fc": Official("MIL_fc of CLAM", "mil-fc", {"d": 8}, TWO_LAYERS),
    "mil-fc-mc": Official(
        "MIL_fc_mc of CLAM", "mil-fc", {"d": 8}, renamed(TWO_LAYERS, "classifier", "classifiers"), 3
    ),
    "mil-fc-earlier-no-dropout": Official(
        "MIL_fc of CLAM before April 2024",
        "mil-fc",
        {"d": 8},
        {"classifier.0": "projection.0", "classifier.2": "head"},
    ),
    "mil-fc-mc-earlier": Official(
        "MIL_fc_mc of CLAM before April 2024",
        "mil-fc",
        {"d": 8},
        renamed(TWO_LAYERS, "classifier", "classifiers"),
        3,
        change=one_layer_per_class,
    ),
    "mean-mil": Official(
        "MeanMIL/MaxMIL", "mean-mil", {"d": 8}, MEAN_MAX, 3, options={"pooling": "mean"}
    ),
    "max-mil": Official(
        "MeanMIL/MaxMIL",
        "max-mil",
        {"d": 8, "projection_activation": "gelu"},
        renamed(MEAN_MAX, "head.3", "head.2"),
        options={"pooling": "max", "projection_activation": "gelu"},
    ),
}

OFFICIAL: dict[str, Official] = {**TRANSFORMERS, **CLAM, **BRANCHES, **ABMIL, **INSTANCE}
