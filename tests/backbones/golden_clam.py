"""CLAM filled like the published implementation, and what that one returned."""

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from foci.backbones.models.clam import CLAM, CLAMMB, CLAMSB
from tests.backbones.golden_weights import fill

D_IN = 24


def golden(name: str) -> dict[str, Any]:
    path = Path(__file__).parent / "golden" / f"{name}.json"
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def published_name(ours: str, *, gated: bool, dropout: bool) -> str:
    """Name of one of our tensors in a published CLAM-SB or CLAM-MB."""
    attention = (
        {"V": "attention_a.0", "U": "attention_b.0", "w": "attention_c"}
        if gated
        else {"V": "module.0", "w": "module.3" if dropout else "module.2"}
    )
    name = re.sub(r"^projection\.0", "attention_net.0", ours)
    name = re.sub(r"^attention\.(\w)", lambda m: f"attention_net.3.{attention[m[1]]}", name)
    name = re.sub(r"^heads\.", "classifiers.", name)
    return re.sub(r"^head\.", "classifiers.", name)


@lru_cache
def model(
    cls: type[CLAMSB] | type[CLAMMB],
    n_classes: int,
    gated: bool,
    hidden: int = 256,
    dropout: float = 0.0,
) -> CLAM:
    """Official widths on features of width 24; shared, so do not change it."""
    clam = cls(D_IN, n_classes, d=512, hidden=hidden, gated=gated, dropout=dropout)
    for key, parameter in clam.named_parameters():
        name = published_name(key, gated=gated, dropout=dropout > 0)
        parameter.data = fill(name, tuple(parameter.shape))
    return clam.eval()
