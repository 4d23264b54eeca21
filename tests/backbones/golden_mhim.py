"""MHIM-MIL of the published code, and the numbers it gave."""

import json
from pathlib import Path
from typing import Any

from foci.backbones.models.mhim import MHIM
from tests.backbones.golden_weights import fill

GOLDEN = json.loads((Path(__file__).parent / "golden" / "mhim_attn.json").read_text())


def official(variant: dict[str, Any], prefix: str = "") -> MHIM:
    """Version 1's attention encoder under the formula's weights, without dropout."""
    model = MHIM(1024, d=512, hidden=128, dropout=0.0, **variant).double().eval()
    gated = {"V": "attention_a.0", "U": "attention_b.0", "w": "attention_c"}
    ungated = {"V": "attention.0", "w": "attention.2"}
    names = {"projection.0": "patch_to_emb.0", "head": "predictor"} | {
        f"attention.{ours}": f"online_encoder.attention.{theirs}"
        for ours, theirs in (gated if variant["gated"] else ungated).items()
    }
    state = {}
    for key, tensor in model.state_dict().items():
        layer, part = key.rsplit(".", 1)
        state[key] = fill(f"{prefix}{names[layer]}.{part}", tuple(tensor.shape))
    model.load_state_dict(state)
    return model
