"""ABMIL, as other projects name its tensors."""

from tests.backbones.checkpoints.official_file import SMALL, Official, gated_names

XMIL = {
    "linear_layers.0.0": "projection.0",
    "attention.0": "attention.V",
    "attention.2": "attention.w",
    "classifier": "head",
}

OFFICIAL = {
    "abmil": Official(
        "ABMIL",
        "abmil",
        {"d": None, "hidden": 6},
        {
            "attention_V.0": "attention.V",
            "attention_U.0": "attention.U",
            "attention_w": "attention.w",
            "classifier.0": "head",
        },
        3,
    ),
    "abmil-2018-projected": Official(
        "ABMIL",
        "abmil",
        SMALL,
        {
            "feature_extractor_part2.0": "projection.0",
            "attention_V.0": "attention.V",
            "attention_U.0": "attention.U",
            "attention_weights": "attention.w",
            "classifier.0": "head",
        },
    ),
    "abmil-plain": Official(
        "ABMIL without gate",
        "abmil",
        {"d": None, "hidden": 6, "gated": False},
        {"attention.0": "attention.V", "attention.2": "attention.w", "classifier.0": "head"},
    ),
    "abmil-acmil": Official(
        "ABMIL of the ACMIL code",
        "abmil",
        {**SMALL, "projection_bias": False},
        {
            "dimreduction.fc1": "projection.0",
            "attention.attention_V.0": "attention.V",
            "attention.attention_U.0": "attention.U",
            "attention.attention_weights": "attention.w",
            "classifier.fc": "head",
        },
        3,
    ),
    "abmil-mhim": Official(
        "ABMIL of the MHIM-MIL code",
        "abmil",
        {**SMALL, "gated": False},
        {
            "feature.0": "projection.0",
            "attention.0": "attention.V",
            "attention.2": "attention.w",
            "classifier.0": "head",
        },
    ),
    "abmil-mhim-v2": Official(
        "ABMIL of the MHIM-MIL v2 code",
        "abmil",
        {**SMALL, "gated": False, "projection_activation": "gelu"},
        {
            "feature.0": "projection.0",
            "attention.0": "attention.V",
            "attention.2": "attention.w",
            "classifier": "head",
        },
        3,
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
    "abmil-attrimil": Official(
        "ABMIL of the AttriMIL code",
        "abmil",
        {"d": None, "hidden": 6, "adaptor_hidden": 5},
        {
            "adaptor.0": "adaptor.0",
            "adaptor.2": "adaptor.2",
            **gated_names("attention_net"),
            "classifier": "head",
        },
        3,
    ),
    "abmil-mil-lab-2-layers": Official(
        "ABMIL of MIL-Lab",
        "abmil",
        {**SMALL, "projection_layers": 2},
        {
            "patch_embed.0": "projection.0",
            "patch_embed.3": "projection.3",
            **gated_names("global_attn"),
            "classifier": "head",
        },
        3,
    ),
    "abmil-xmil-3-layers": Official(
        "ABMIL of xMIL",
        "abmil",
        {**SMALL, "gated": False, "projection_layers": 3},
        {
            **XMIL,
            "linear_layers.1.0": "projection.3",
            "linear_layers.2.0": "projection.6",
        },
    ),
    "abmil-mil-lab": Official(
        "ABMIL of MIL-Lab",
        "abmil",
        SMALL,
        {"patch_embed.0": "projection.0", **gated_names("global_attn"), "classifier": "head"},
        3,
    ),
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
