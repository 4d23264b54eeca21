"""Everything that decides a selector decides its key."""

import dataclasses
import os
from pathlib import Path
from typing import Any

from foci.bags import Cohort
from foci.selectors import recipe, vary
from foci.selectors.fitting import run_key
from foci.selectors.selector import Identity
from tests.makers.cohorts import planted

IDENTITY = Identity("abmil", "00ff", (0.5, -0.5))
PLAN = recipe("paper-ste")


def key(cohort: Cohort, **changes: Any) -> str:
    given: dict[str, Any] = {
        "identity": IDENTITY,
        "recipe": PLAN,
        "seed": 0,
        "target": "label",
        "site": "attention",
        "train": cohort.split("train"),
        "val": cohort.split("val"),
        "criterion": "loss",
    }
    return run_key(**{**given, **changes})


def test_another_fit_has_another_key(cohort: Cohort) -> None:
    train, val = cohort.split("train"), cohort.split("val")
    fewer = dataclasses.replace(train, slides=train.slides[1:])
    first = dataclasses.replace(val.slides[0], label="b")
    relabelled = dataclasses.replace(val, slides=(first, *val.slides[1:]))
    keys = [
        key(cohort),
        key(cohort, identity=dataclasses.replace(IDENTITY, fingerprint="00fe")),
        key(cohort, identity=dataclasses.replace(IDENTITY, probe=(0.5, 0.5))),
        key(cohort, recipe=vary(PLAN, {"weights.suff": 0.25})),
        key(cohort, recipe=vary(PLAN, {"width": 128})),
        key(cohort, seed=1),
        key(cohort, target="prediction"),
        key(cohort, site="feature"),
        key(cohort, train=fewer),
        key(cohort, train=dataclasses.replace(train, classes=("b", "a"))),
        key(cohort, val=relabelled),
        key(cohort, criterion="aukc"),
        key(cohort, criterion="aukc", target="prediction"),
    ]
    assert len(set(keys)) == len(keys)
    assert key(cohort) == keys[0]


def test_a_cohort_is_its_slides_and_their_files(tmp_path: Path) -> None:
    cohort = planted(tmp_path)
    features, labels = tmp_path / "features", tmp_path / "labels.csv"

    def read(**options: Any) -> str:
        again = Cohort.read(features, labels, cache=False, **options)
        return key(cohort, train=again)

    found = [read(), key(cohort, train=cohort.split("val")), read(n_cap=5), read(mpp=0.5)]
    found += [read(layout="trident"), read(classes=["b", "a"])]
    assert read() == found[0] == key(cohort, train=cohort)
    os.utime(features / "s3.h5", ns=(5, 5))
    found.append(read())
    labels.write_text(labels.read_text().replace("s5,c5,b", "s5,c5,a"))
    found.append(read())
    assert len(set(found)) == len(found)
