"""ACMIL and ASMIL."""

import torch

from tests.backbones.checkpoints.official_file import SMALL, Official, with_tensors


def _queried(theirs: str, ours: str, parts: str) -> dict[str, str]:
    layers = {f"{theirs}.{part}_proj": f"{ours}.{part}" for part in parts}
    return {**layers, f"{theirs}.out_proj": f"{ours}.out", f"{theirs}.layer_norm": f"{ours}.norm"}


ACMIL = {
    "dimreduction.fc1": "projection.0",
    "attention.attention_V.0": "attention.V",
    "attention.attention_U.0": "attention.U",
    "attention.attention_weights": "attention.w",
    **{f"classifier.{r}.fc": f"branch_heads.{r}" for r in range(4)},
    "Slide_classifier.fc": "head",
}
ACMIL_MHA = {
    "q": "branches.queries",
    "dimreduction.fc1": "projection.0",
    **_queried("sub_attention.0", "branches.attention.0", "qkv"),
    **_queried("sub_attention.1", "branches.attention.1", "qkv"),
    **_queried("bag_attention", "bag", "v"),
    "classifier.0.fc": "branch_heads.0",
    "classifier.1.fc": "branch_heads.1",
    "Slide_classifier.fc": "head",
}

OFFICIAL = {
    "acmil": Official("ACMIL", "acmil", {**SMALL, "branches": 4}, ACMIL, 3),
    "acmil-mha": Official(
        "ACMIL with multi-head attention", "acmil-mha", {"d": 16, "branches": 2}, ACMIL_MHA
    ),
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
        ACMIL_MHA | {"cls": "class_query"} | _queried("bag_attention", "bag", "qkv"),
        change=with_tensors(
            **{"dimreduction.bn.weight": torch.ones(16), "dimreduction.bn.bias": torch.zeros(16)}
        ),
    ),
}
