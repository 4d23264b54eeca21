"""AttriMIL filled like the published implementation, and what that one returned."""

import json
import re
from pathlib import Path
from typing import Any

from foci.backbones.models.attrimil import AttriMIL
from tests.backbones.golden_weights import fill

D_IN = 24
GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parent / "golden" / "attrimil.json").read_text()
)


def published_name(ours: str) -> str:
    """Name of one of our tensors in the published model."""
    attention = {"V": "attention_a.0", "U": "attention_b.0", "w": "attention_c"}
    name = re.sub(
        r"^attention\.(\d+)\.(\w)", lambda m: f"attention_nets.{m[1]}.{attention[m[2]]}", ours
    )
    name = re.sub(r"^scorers\.", "classifiers.", name)
    return "bias" if name == "beta" else name


def model(n_classes: int, bias_shift: float = 0.0) -> AttriMIL:
    """The official form on features of width 24; ``bias_shift`` is added to every scorer."""
    attrimil = AttriMIL(D_IN, n_classes)
    for key, parameter in attrimil.named_parameters():
        parameter.data = fill(published_name(key), tuple(parameter.shape))
        if re.fullmatch(r"scorers\.\d+\.bias", key):
            parameter.data += bias_shift
    return attrimil
