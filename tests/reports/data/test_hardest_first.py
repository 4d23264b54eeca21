"""Slides sorted by difficulty."""

import numpy as np

from foci.audits import StoredAudit
from foci.metrics import aukc, msk, restricted


def test_hardest_first_is_by_tiles_and_then_by_area(audit: StoredAudit) -> None:
    found = audit.measured()
    keys = []
    for row in range(len(audit.slides)):
        curves = [seeds[row] for seeds in audit.curves.every_seed("selector")]
        target = int(curves[0].full.argmax())
        needed = restricted([msk(c.probs, c.ks, target) for c in curves]).mean()
        area = np.mean([aukc(c.probs, c.ks, c.n_tiles, target) for c in curves])
        keys.append((-needed, area))
    assert found.hardest_first.tolist() == sorted(range(len(keys)), key=lambda row: keys[row])


def test_the_headline_is_the_selector_or_what_there_is(
    audit: StoredAudit, unlabelled: StoredAudit
) -> None:
    assert audit.measured().headline == "selector"
    other = unlabelled.measured()
    assert other.headline == "native"
    assert set(other.tables) == {"prediction"}
