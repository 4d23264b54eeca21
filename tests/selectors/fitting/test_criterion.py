from pathlib import Path

import numpy as np
import pytest
import torch

from foci import selectors
from foci.metrics import aukc
from foci.reveal import curve
from foci.selectors.fitting.criterion import validation_aukc
from tests.backbones.every import small
from tests.makers.cohorts import planted


def test_validation_aukc_is_the_mean_over_slides(tmp_path: Path) -> None:
    cohort = planted(tmp_path).split("val")
    model = small("abmil", "paper", 2).eval()
    head = selectors.SelectorHead(model.d_token, 2)
    selector = selectors.Selector(head, model, None)  # type: ignore[arg-type]
    for target in ("label", "prediction"):
        want = []
        for bag in cohort.bags():
            y = cohort.target(bag.slide_id)
            if target == "prediction":
                y = int(model(bag.x).argmax())
            order = torch.argsort(selector.rank(bag.x, y), descending=True)
            ks = [k for k in (1, 2, 3, 4, 6, 8, 12) if k < len(bag)] + [len(bag)]
            want.append(aukc(curve(model, bag.x, order, ks).numpy(), ks, len(bag), y))
        got = validation_aukc(model, cohort, target)(selector)  # type: ignore[arg-type]
        assert got == pytest.approx(np.mean(want), abs=1e-9)


def test_its_name_is_part_of_the_key_of_a_fit() -> None:
    model = small("abmil", "paper", 2)
    judge = validation_aukc(model, None, "label")  # type: ignore[arg-type]
    assert judge.__qualname__ == "validation_aukc.<locals>.mean_aukc"
