"""Slides measured once for table and slide views."""

import numpy as np

from foci.audits import Audit
from foci.audits.analysis.recompute import stored_settings
from foci.metrics import aukc, msk, restricted
from foci.reports.data.per_slide import per_slide


def test_hardest_first_is_by_tiles_and_then_by_area(audit: Audit) -> None:
    found = per_slide(audit, stored_settings(audit))
    keys = []
    for row in range(len(audit.slides)):
        curves = [seeds[row] for seeds in audit.curves.every_seed("selector")]
        target = int(curves[0].full.argmax())
        needed = restricted([msk(c.probs, c.ks, target) for c in curves]).mean()
        area = np.mean([aukc(c.probs, c.ks, c.n_tiles, target) for c in curves])
        keys.append((-needed, area))
    assert found.hardest_first.tolist() == sorted(range(len(keys)), key=lambda row: keys[row])


def test_the_headline_is_the_selector_or_what_there_is(audit: Audit, unlabelled: Audit) -> None:
    assert per_slide(audit, stored_settings(audit)).headline == "selector"
    other = per_slide(unlabelled, stored_settings(unlabelled))
    assert other.headline == "native"
    assert set(other.views) == {"prediction"}
