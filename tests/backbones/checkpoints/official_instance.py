"""DSMIL, mean and max pooling, and MIL_fc under the names of the projects that published them."""

from collections.abc import Callable

import torch
from torch import Tensor

from tests.backbones.checkpoints.official_file import Official, renamed, with_tensors

Change = Callable[[dict[str, Tensor]], dict[str, Tensor]]
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

    def change(state: dict[str, Tensor]) -> dict[str, Tensor]:
        key = next(key for key in state if key.endswith("b_classifier.fcc.weight"))
        return {**state, key: state[key].view(outputs, outputs, -1)}

    return change


def extractor(state: dict[str, Tensor]) -> dict[str, Tensor]:
    more = {"i_classifier.feature_extractor.conv1.weight": torch.zeros(4, 3, 7, 7)}
    return with_tensors(**more)(convolution(2)(state))


def unused_predictor(state: dict[str, Tensor]) -> dict[str, Tensor]:
    more = {"predictor.weight": torch.zeros(2, 8), "predictor.bias": torch.zeros(2)}
    return with_tensors(**more)(convolution(2)(state))


def one_layer_per_class(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The head of MIL_fc_mc before April 2024."""
    apart = {
        f"classifiers.{c}.{part}": state[f"classifiers.{part}"][c : c + 1]
        for c in range(3)
        for part in ("weight", "bias")
    }
    return {key: state[key] for key in state if not key.startswith("classifiers.")} | apart


OFFICIAL: dict[str, Official] = {
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
    "mil-fc-earlier": Official(
        "MIL_fc of CLAM before April 2024",
        "mil-fc",
        {"d": 8},
        {"classifier.0": "projection.0", "classifier.3": "head"},
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
