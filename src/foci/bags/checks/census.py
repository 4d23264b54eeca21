"""Read every feature file once, and keep what the checks need to know."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foci.bags.bag import Bag
from foci.bags.grid import share_on_grid, spacing
from foci.bags.layouts.boundary import reading
from foci.bags.read import read_bag
from foci.errors import BagError, EmptyBagError, NotFiniteError
from foci.progress import Progress


@dataclass(frozen=True)
class FileFacts:
    """What the checks know of one feature file.

    Attributes:
        slide_id: File name without ending.
        problem: ``"empty"``, ``"not finite"``, ``"unreadable"``, or None for a good bag.
        message: The refusal in one line, if any.
        layout: Name of the reader.
        encoder: Encoder named in the file.
        n_tiles: Number of tiles.
        width: Feature width.
        has_coords: Whether there are coordinates.
        on_grid: Share of neighbouring tiles whose distance is a multiple of the spacing.
        duplicates: Tiles at a position already taken.
        patch_size_inferred: Whether the tile size had to be inferred.
    """

    slide_id: str
    problem: str | None = None
    message: str = ""
    layout: str = ""
    encoder: str | None = None
    n_tiles: int = 0
    width: int = 0
    has_coords: bool = False
    on_grid: float = 1.0
    duplicates: int = 0
    patch_size_inferred: bool = False


def take_census(
    files: dict[str, Path],
    *,
    layout: str = "auto",
    mpp: float | None = None,
    sample: int | None = None,
    progress: Progress = lambda items, what: items,
) -> list[FileFacts]:
    """Read every file, or ``sample`` of them spread evenly over the folder."""
    names = sorted(files)
    if sample is not None and sample < len(names):
        names = [names[i] for i in np.linspace(0, len(names) - 1, sample).astype(int)]
    return [_facts(name, files[name], layout, mpp) for name in progress(names, "reading")]


def _facts(name: str, path: Path, layout: str, mpp: float | None) -> FileFacts:
    try:
        with reading(path):
            return _describe(read_bag(path, slide_id=name, layout=layout, mpp=mpp))
    except EmptyBagError as error:
        return FileFacts(name, "empty", str(error))
    except NotFiniteError as error:
        return FileFacts(name, "not finite", str(error))
    except BagError as error:
        return FileFacts(name, "unreadable", str(error))


def _describe(bag: Bag) -> FileFacts:
    on_grid, duplicates = 1.0, 0
    if bag.coords is not None:
        step = spacing(bag.coords)
        on_grid = 1.0 if step is None else share_on_grid(bag.coords, step)
        duplicates = len(bag) - len(np.unique(bag.coords, axis=0))
    return FileFacts(
        slide_id=bag.slide_id,
        layout=bag.provenance.layout,
        encoder=bag.provenance.encoder,
        n_tiles=len(bag),
        width=bag.width,
        has_coords=bag.coords is not None,
        on_grid=on_grid,
        duplicates=duplicates,
        patch_size_inferred=bag.patch_size_inferred,
    )
