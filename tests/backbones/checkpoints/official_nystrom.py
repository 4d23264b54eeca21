"""TransMIL and MHIM-MIL."""

import torch

from tests.backbones.checkpoints.official_file import (
    SMALL,
    Official,
    gated_names,
    renamed,
    with_tensors,
)

NYSTROM = {"d": 16, "heads": 4, "landmarks": 8}


def _nystrom(theirs: str, ours: str) -> dict[str, str]:
    return {
        f"{theirs}.to_qkv": f"{ours}.attention.qkv",
        f"{theirs}.to_out.0": f"{ours}.attention.output",
        f"{theirs}.res_conv": f"{ours}.attention.residual",
    }


def _convolutions(theirs: str) -> dict[str, str]:
    return {
        f"{theirs}.proj": "position.conv7",
        f"{theirs}.proj1": "position.conv5",
        f"{theirs}.proj2": "position.conv3",
    }


def _mhim_selfattn(projection: str) -> dict[str, str]:
    return {
        projection: "projection.0",
        "online_encoder.cls_token": "cls",
        "online_encoder.norm": "norm",
        "online_encoder.layer1.norm": "layer1.norm",
        **_nystrom("online_encoder.layer1.attn", "layer1"),
        "online_encoder.layer2.norm": "layer2.norm",
        **_nystrom("online_encoder.layer2.attn", "layer2"),
        **_convolutions("online_encoder.pos_embedding"),
        "predictor": "head",
    }


TRANSMIL = {
    "cls_token": "cls",
    **_convolutions("pos_layer"),
    "_fc1.0": "projection.0",
    "layer1.norm": "layer1.norm",
    **_nystrom("layer1.attn", "layer1"),
    "layer2.norm": "layer2.norm",
    **_nystrom("layer2.attn", "layer2"),
    "norm": "norm",
    "_fc2": "head",
}
TRANSMIL_MIL_LAB = {
    "patch_embed.0": "projection.0",
    **_convolutions("pos_layer"),
    "cls_token": "cls",
    "blocks.0.norm": "layer1.norm",
    **_nystrom("blocks.0.attention", "layer1"),
    "blocks.1.norm": "layer2.norm",
    **_nystrom("blocks.1.attention", "layer2"),
    "norm": "norm",
    "classifier": "head",
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

OFFICIAL = {
    "transmil": Official("TransMIL", "transmil-nystrom", {"d": 16, "heads": 8}, TRANSMIL, 3),
    "transmil-0.0.9": Official(
        "TransMIL",
        "transmil-nystrom",
        {**NYSTROM, "aligned": False},
        TRANSMIL,
        options={"aligned": False, "landmarks": 8},
    ),
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
        change=with_tensors(**{"mlp_layers.0.0.weight": torch.ones(16, 16)}),
    ),
    "mhim-v1-gated": Official("MHIM-MIL v1", "mhim", SMALL, MHIM_GATED),
    "mhim-v1-ungated": Official(
        "MHIM-MIL v1",
        "mhim",
        {**SMALL, "gated": False, "activation": "tanh", "projection_activation": "gelu"},
        MHIM_UNGATED,
        3,
        options={"activation": "tanh", "projection_activation": "gelu"},
    ),
    "mhim-v1-ungated-dropout": Official(
        "MHIM-MIL v1",
        "mhim",
        {**SMALL, "gated": False},
        renamed(MHIM_UNGATED, "attention.2", "attention.3"),
    ),
    "mhim-v1-bias": Official("MHIM-MIL v1", "mhim", {**SMALL, "attention_bias": True}, MHIM_GATED),
    "mhim-v1-selfattn": Official(
        "MHIM-MIL v1 with self-attention",
        "mhim-selfattn",
        {"d": 16, "heads": 8, "head_width": 2},
        _mhim_selfattn("patch_to_emb.0"),
    ),
    "mhim-v1-selfattn-2-heads": Official(
        "MHIM-MIL v1 with self-attention",
        "mhim-selfattn",
        {"d": 16, "heads": 2, "head_width": 2, "landmarks": 4, "activation": "gelu"},
        _mhim_selfattn("patch_to_emb.0"),
        options={"landmarks": 4, "projection_activation": "gelu"},
    ),
    "mhim-v2-merge": Official(
        "MHIM-MIL v2",
        "mhim",
        {**SMALL, "gated": False, "projection_activation": "gelu"},
        renamed(MHIM_UNGATED, "patch_to_emb", "feature"),
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
        _mhim_selfattn("feature.0"),
        3,
    ),
}
