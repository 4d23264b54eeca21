"""Tissue in coherent regions; witnesses, distractors and artefacts where they belong."""

import numpy as np
import pytest

from foci.demo.cohort import (
    FOLD,
    KINDS,
    PEN,
    TUMOUR,
    Layout,
    TissueMap,
    lay_out,
    map_tissue,
    pieces,
)

Mapped = tuple[Layout, TissueMap]


@pytest.fixture(scope="module")
def mapped() -> list[Mapped]:
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        layout = lay_out(rng)
        found.append((layout, map_tissue(rng, layout)))
    return found


def test_witnesses_are_two_to_six_percent_in_one_cluster_of_tumour(mapped: list[Mapped]) -> None:
    for layout, tissue in mapped:
        chosen = np.flatnonzero(tissue.witness)
        place = {tile: number for number, tile in enumerate(chosen)}
        inside = [[place[j] for j in layout.touching[i] if j in place] for i in chosen]
        assert pieces(inside).max() == 0
        assert max(3, 0.02 * len(layout)) <= len(chosen) <= 0.06 * len(layout)
        assert (tissue.kind[chosen] == TUMOUR).all()


def test_distractors_and_artefacts_spare_the_witnesses(mapped: list[Mapped]) -> None:
    for _, tissue in mapped:
        artefact = np.isin(tissue.kind, [PEN, FOLD])
        assert 2 <= artefact.sum() <= 6
        assert not (artefact & (tissue.witness | tissue.distractor)).any()
        assert not (tissue.distractor & tissue.witness).any()
        assert tissue.distractor.any()
        assert (tissue.kind[tissue.distractor] == TUMOUR).all()


def test_neighbours_mostly_show_the_same_tissue(mapped: list[Mapped]) -> None:
    alike, at_random = [], []
    for layout, tissue in mapped:
        pairs = [(i, j) for i, own in enumerate(layout.touching) for j in own]
        first, second = np.array(pairs).T
        alike.append(np.mean(tissue.kind[first] == tissue.kind[second]))
        at_random.append(((np.bincount(tissue.kind) / len(layout)) ** 2).sum())
    assert np.mean(alike) > 0.6
    assert np.mean(alike) > 2 * np.mean(at_random)


def test_every_kind_occurs_and_stroma_is_the_commonest_benign_one(mapped: list[Mapped]) -> None:
    total = sum(np.bincount(tissue.kind, minlength=len(KINDS)) for _, tissue in mapped)
    assert (total > 0).all()
    assert KINDS[int(np.argmax(total[:TUMOUR]))] == "stroma"
    assert 0.15 < total[TUMOUR] / total.sum() < 0.4
