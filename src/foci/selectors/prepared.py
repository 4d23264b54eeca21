"""Embedded bags of a fit, cached in memory as far as it allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from foci.backbones.base import Backbone
from foci.backbones.freezing import to_model
from foci.bags import Bag, Cohort, Slide
from foci.bags.bag import side_by_side
from foci.errors import BagError, FociError
from foci.reveal import KAPPA, EmbeddedBag
from foci.selectors import Target
from foci.selectors.evidence import evidence_columns
from foci.selectors.gated import GatedBackbone
from foci.selectors.objective import GatedBatch, unit_box


@dataclass(frozen=True)
class PreparedBag:
    """Everything about one bag that no gate can change: a row of a :class:`GatedBatch`."""

    tiles: dict[str, Tensor]
    coords: Tensor
    target: int
    full: Tensor

    @property
    def n_bytes(self) -> int:
        """Bytes in memory; tensors that share their storage count once."""
        storages = [tensor.untyped_storage() for tensor in (*self.tiles.values(), self.coords)]
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    @property
    def decided(self) -> bool:
        """Whether the backbone is sure of the full bag, and there is a tile to drop."""
        sure = float(torch.softmax(self.full.double(), dim=-1).max()) >= KAPPA
        return len(self.coords) > 1 and sure


class PreparedBags:
    """Cache of prepared bags, filled on demand.

    The first bags that fit into memory stay there and are never replaced: every epoch visits all
    slides in another order, where a least-recently-used cache would miss more often.

    With ``evidence``, they hold the columns of
    :func:`~foci.selectors.evidence.evidence_columns`, too.
    """

    def __init__(
        self,
        cohort: Cohort,
        gated: GatedBackbone,
        target: Target,
        memory_gb: float,
        *,
        evidence: bool = False,
    ) -> None:
        self.cohort, self.gated, self.target = cohort, gated, target
        self.evidence = evidence
        self._free = memory_gb * 1e9
        self._kept: dict[str, PreparedBag] = {}
        self._classes: dict[str, tuple[int, int]] = {}  # target and prediction, for every bag seen

    def __getitem__(self, slide: Slide) -> PreparedBag:
        kept = self.in_memory(slide)
        if kept is not None:
            return kept
        bag = self._prepare(slide)
        self._classes[slide.slide_id] = bag.target, int(bag.full.argmax())
        if bag.n_bytes <= self._free:
            self._free -= bag.n_bytes
            self._kept[slide.slide_id] = bag
        return bag

    def in_memory(self, slide: Slide) -> PreparedBag | None:
        """The prepared bag of a slide, if it is kept; nothing is read."""
        return self._kept.get(slide.slide_id)

    def target_of(self, slide: Slide) -> int:
        """The class that a slide's kept tiles should support."""
        return self._classes_of(slide)[0]

    def predicted_of(self, slide: Slide) -> int:
        """The class that the backbone predicts for a slide's full bag."""
        return self._classes_of(slide)[1]

    def _classes_of(self, slide: Slide) -> tuple[int, int]:
        if slide.slide_id not in self._classes:
            _ = self[slide]  # notes both
        return self._classes[slide.slide_id]

    def batch(self, slides: Sequence[Slide]) -> GatedBatch:
        """A batch of slides, padded to the longest bag."""
        bags = [self[slide] for slide in slides]
        device = bags[0].full.device
        lengths = torch.tensor([len(bag.coords) for bag in bags], device=device)
        return GatedBatch(
            tiles={
                name: pad_sequence([bag.tiles[name] for bag in bags], batch_first=True)
                for name in bags[0].tiles
            },
            mask=torch.arange(int(lengths.max()), device=device)[None, :] < lengths[:, None],
            coords=pad_sequence([bag.coords for bag in bags], batch_first=True),
            targets=torch.tensor([bag.target for bag in bags], device=device),
            full=torch.stack([bag.full for bag in bags]),
        )

    def opened(self, slide: Slide, target: int) -> EmbeddedBag:
        """The bag before the backbone, with the tokens that are already there."""
        backbone = self.gated.backbone
        features = to_model(read_bag(self.cohort, slide, backbone).x, backbone)
        return EmbeddedBag(backbone, features, target, tokens=self[slide].tiles["tokens"])

    @torch.no_grad()
    def _prepare(self, slide: Slide) -> PreparedBag:
        backbone = self.gated.backbone
        bag = read_bag(self.cohort, slide, backbone)
        features = to_model(bag.x, backbone)
        tiles = self.gated.prepare(features)
        full = backbone.aggregate(tiles["tokens"].unsqueeze(0))[0]
        if bool(full.isnan().any()):
            raise FociError(
                f"backbone {backbone.architecture}",
                f"answers NaN for slide {slide.slide_id}",
                "fix it, or leave the slide out",
            )
        if self.evidence:
            tiles["evidence"] = evidence_columns(backbone, tiles["tokens"])
        coords = torch.zeros(len(bag), 2)
        if bag.coords is not None:
            places = side_by_side(bag.coords, bag.sources) if bag.sources else bag.coords
            coords = unit_box(torch.from_numpy(places))
        by_label = self.target == "label"
        target = self.cohort.target(slide.slide_id) if by_label else int(full.argmax())
        return PreparedBag(tiles, coords.to(features), target, full)


def read_bag(cohort: Cohort, slide: Slide, backbone: Backbone) -> Bag:
    """A slide's bag; refused if its features are not as wide as the backbone's."""
    bag = cohort.store.bag(slide)
    if bag.width != backbone.d_in:
        raise BagError(
            slide.slide_id,
            f"features are {bag.width} wide, the backbone reads {backbone.d_in}",
            "use the features that the backbone was trained on",
        )
    return bag
