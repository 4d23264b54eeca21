"""CLAM and AttriMIL."""

import torch

from tests.backbones.checkpoints.official_file import (
    SMALL,
    Official,
    gated_names,
    renamed,
    with_tensors,
)


def instance_names(n: int) -> dict[str, str]:
    return {f"instance_classifiers.{c}": f"instance_classifiers.{c}" for c in range(n)}


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

OFFICIAL = {
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
    "clam-sb-ungated": Official("CLAM-SB", "clam-sb", {**SMALL, "gated": False}, CLAM_UNGATED),
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
        "CLAM-MB",
        "clam-mb",
        SMALL,
        {
            "attention_net.0": "projection.0",
            **gated_names("attention_net.3"),
            **{f"classifiers.{c}": f"heads.{c}" for c in range(3)},
            **instance_names(3),
        },
        3,
    ),
    "clam-mb-ungated": Official(
        "CLAM-MB",
        "clam-mb",
        {**SMALL, "gated": False},
        {
            "attention_net.0": "projection.0",
            "attention_net.3.module.0": "attention.V",
            "attention_net.3.module.2": "attention.w",
            "classifiers.0": "heads.0",
            "classifiers.1": "heads.1",
            **instance_names(2),
        },
    ),
    "clam-mil-lab": Official(
        "CLAM-SB of MIL-Lab",
        "clam-sb",
        SMALL,
        {
            "patch_embed.0": "projection.0",
            **gated_names("global_attn"),
            "classifier": "head",
            **instance_names(2),
        },
    ),
    "attrimil": Official(
        "AttriMIL",
        "attrimil",
        {},
        {
            "bias": "beta",
            "adaptor.0": "adaptor.0",
            "adaptor.2": "adaptor.2",
            **gated_names("attention_nets.0", "attention.0"),
            **gated_names("attention_nets.1", "attention.1"),
            **gated_names("attention_nets.2", "attention.2"),
            **{f"classifiers.{c}": f"scorers.{c}" for c in range(3)},
        },
        3,
    ),
    "attrimil-alignment": Official(
        "AttriMIL",
        "attrimil",
        {"d": 8},
        {
            "alignment.0": "projection.0",
            "bias": "beta",
            "adaptor.0": "adaptor.0",
            "adaptor.2": "adaptor.2",
            **gated_names("attention_nets.0", "attention.0"),
            **gated_names("attention_nets.1", "attention.1"),
            "classifiers.0": "scorers.0",
            "classifiers.1": "scorers.1",
        },
    ),
}
