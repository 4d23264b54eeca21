"""ACMIL and ASMIL with the formula's weights, under the names of the authors' tensors."""

import re
from typing import Any, TypeAlias

import torch

from foci.backbones.models.acmil import ACMIL, ACMILMultiHead
from foci.backbones.models.asmil import ASMILQuery
from tests.backbones.golden_weights import fill

Branched: TypeAlias = ACMIL | ACMILMultiHead | ASMILQuery

_PARTS = (
    (r"^projection\.0\.", "dimreduction.fc1."),
    (r"^attention\.V\.", "attention.attention_V.0."),
    (r"^attention\.U\.", "attention.attention_U.0."),
    (r"^attention\.w\.", "attention.attention_weights."),
    (r"^branches\.queries$", "q"),
    (r"^class_query$", "cls"),
    (r"^branches\.attention\.(\d+)\.([qkv]|out)\.", r"sub_attention.\1.\2_proj."),
    (r"^branches\.attention\.(\d+)\.norm\.", r"sub_attention.\1.layer_norm."),
    (r"^bag\.([qkv]|out)\.", r"bag_attention.\1_proj."),
    (r"^bag\.norm\.", "bag_attention.layer_norm."),
    (r"^branch_heads\.(\d+)\.", r"classifier.\1.fc."),
    (r"^head\.", "Slide_classifier.fc."),
)


def official(name: str) -> str:
    """The authors' name of one of our tensors."""
    for pattern, replacement in _PARTS:
        renamed, count = re.subn(pattern, replacement, name)
        if count:
            return renamed
    raise AssertionError(f"{name} has no counterpart")


def filled(
    module: torch.nn.Module, prefix: str = "", scaled: dict[str, float] | None = None
) -> dict[str, torch.Tensor]:
    """A state dict for ``module`` by the formula, tensor by tensor."""
    state = {}
    for name, tensor in module.state_dict().items():
        key = official(name)
        value = fill(prefix + key, tuple(tensor.shape), norm=key.endswith("norm.weight"))
        state[name] = value * (scaled or {}).get(key, 1.0)
    return state


def build(
    cls: type[Branched], golden: dict[str, Any], case: dict[str, Any], **widths: Any
) -> Branched:
    """The variant that a case names, filled, in float64."""
    variant = {k: v for k, v in golden["variants"][case["variant"]].items() if k != "keys"}
    model = cls(**variant, **widths).double()
    model.load_state_dict(filled(model, scaled=case.get("scaled")))
    return model.eval()


def pooled(model: Branched, x: torch.Tensor) -> torch.Tensor:
    tokens = model.embed(x)
    return torch.softmax(model.attend(tokens), dim=0).T @ tokens
