"""ACMIL: several attention branches, challenged to differ (Zhang et al. 2024)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones.attention import (
    GatedAttention,
    HeadReadout,
    QueryBranches,
    pool,
    projection,
)
from foci.backbones.base import (
    Batch,
    Objective,
    architecture,
    choose,
    declares,
    objective_of,
    preset,
)
from foci.backbones.models._pooled import (
    PooledBackbone,
    Score,
    check_branches,
    classify_branches,
    mean_attention,
    official_width,
)
from foci.errors import FociError
from foci.parts import Structure


@architecture("acmil")
class ACMIL(PooledBackbone):
    r"""K gated attention rows on one trunk; the slide is read with the mean of their maps.

    .. math:: h_i = \mathrm{ReLU}(W x_i), \quad
       a_{ri} = w_r^\top(\tanh(V h_i) \odot \sigma(U h_i)) + b_r, \quad
       \ell = \mathrm{head}\Big(\sum_i \frac1K \sum_r \mathrm{softmax}(a_r)_i\, h_i\Big)

    The mean is over softmax maps, not over logits: a softmax of the mean logits would be another
    model. Each branch also has a classifier of its own, used only in training
    (:class:`ACMILObjective`).

    Args:
        d: Token width; None for the authors' choice, half the feature width.
        branches: Number of branches K.
        score: What the native score averages over the branches: ``"logits"`` or ``"softmax"``.
        hidden: Attention width.
    """

    homogeneous = True

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None = None,
        branches: int = 5,
        score: Score = "logits",
        hidden: int = 128,
    ) -> None:
        check_branches(branches, score)
        d = official_width(d_in) if d is None else d
        super().__init__(d_in, n_classes, d_token=d, d=d)
        self.n_branches, self.score = branches, score
        self.projection = projection(d_in, d, bias=False)
        self.branch_heads = nn.ModuleList(nn.Linear(d, n_classes) for _ in range(branches))
        self.head = nn.Linear(d, n_classes)
        self.attention = GatedAttention(d, hidden, rows=branches)

    def branch_logits(self, pooled: Tensor) -> Tensor:
        """Pooled tokens ``[..., K, d]`` to every branch's own logits ``[..., K, C]``."""
        return classify_branches(self.branch_heads, pooled)

    @property
    def structure(self) -> Structure:
        """Several rows, unless there is one branch only."""
        return "linear head" if self.n_branches == 1 else "rows"

    @declares("split-readout", "parts")
    def readout(self, pooled: Tensor) -> Tensor:
        """Slide classifier on the mean over the branches."""
        logits: Tensor = self.head(pooled.mean(dim=-2))
        return logits

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        """Mean over the branches, which may follow the slide classifier."""
        return projected.mean(dim=-2)

    def scores(self, tokens: Tensor) -> Tensor:
        """Mean over the branches of the attention logits, or of the softmax maps."""
        return mean_attention(self.attend(tokens), self.score)


@architecture("acmil-mha")
class ACMILMultiHead(PooledBackbone):
    r"""ACMIL with K learned queries; the slide is read with the mean of their maps.

    Query r scores the tiles with head j by :math:`a^{rj}_i`: R = K*H attention rows. The slide's
    token has no query of its own: its head j pools with the mean map and projects with values of
    its own,

    .. math:: z_j = \sum_i \frac1K \sum_r \mathrm{softmax}(a^{rj})_i\, h_i, \qquad
       \ell = \mathrm{head}\big(\mathrm{readout}(z_1, \dots, z_H)\big)

    with the readout of :class:`~foci.backbones.attention.HeadReadout`. Each branch
    has its own readout and classifier, used only in training.

    Args:
        d, branches, score: As for :class:`ACMIL`; ``d`` is a multiple of ``heads``, and the score
            is averaged over queries and heads.
        heads: Heads H of every attention.
        dropout: On the attention outputs, while training.
    """

    homogeneous = True

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int | None = None,
        branches: int = 5,
        score: Score = "logits",
        heads: int = 8,
        dropout: float = 0.1,
    ) -> None:
        check_branches(branches, score)
        d = official_width(d_in) if d is None else d
        super().__init__(d_in, n_classes, d_token=d, d=d)
        self.n_branches, self.score = branches, score
        self.projection = projection(d_in, d, bias=False)
        self.branch_heads = nn.ModuleList(nn.Linear(d, n_classes) for _ in range(branches))
        self.head = nn.Linear(d, n_classes)
        self.branches = QueryBranches(d, branches, heads, dropout)
        self.bag = HeadReadout(d, heads, dropout)

    def attend(self, tokens: Tensor) -> Tensor:
        """One row per query and head."""
        logits: Tensor = self.branches(tokens)
        return logits

    def branch_logits(self, pooled: Tensor) -> Tensor:
        """Pooled tokens ``[..., R, d]`` to every query's own logits ``[..., K, C]``."""
        return classify_branches(self.branch_heads, self.branches.read(pooled))

    @declares("split-readout")
    def readout(self, pooled: Tensor) -> Tensor:
        """Values of the pooled tokens, then the slide."""
        return self.read(self.project(pooled))

    @declares("split-readout")
    def project(self, values: Tensor) -> Tensor:
        """The slide's own values ``[..., R, d/H]``, of pooled tokens or tiles ``[..., 1, d]``."""
        if values.shape[-2] == 1:
            return torch.cat([self.bag.project(values)] * self.n_branches, dim=-2)
        groups = torch.unflatten(values, -2, (self.n_branches, -1))
        return self.bag.project(groups).flatten(-3, -2)

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        """Mean over the queries, head by head, then the slide's readout and classifier."""
        per_head = torch.unflatten(projected, -2, (self.n_branches, -1)).mean(dim=-3)
        logits: Tensor = self.head(self.bag(per_head))
        return logits

    def scores(self, tokens: Tensor) -> Tensor:
        """Mean over queries and heads of the attention logits, or of the softmax maps."""
        return mean_attention(self.attend(tokens), self.score)


def stochastic_topk_mask(
    logits: Tensor, mask: Tensor, *, n_mask: int = 10, mask_drop: float = 0.6
) -> Tensor:
    r"""Stochastic top-K instance masking (STKIM): hide some of every row's strongest tiles.

    Among the :math:`m = \min(n_\mathrm{mask}, N)` tiles with the highest logits
    :math:`\lfloor m \cdot \mathrm{mask\_drop} \rfloor` are chosen at random, row by row and bag
    by bag, but never more than :math:`N - 1`: a bag keeps at least one tile even at a drop of 1.

    From attention logits ``[..., N, R]`` and the mask ``[..., N]`` of real tiles to ``[..., N, R]``
    bool, True where a tile is hidden from a row.
    """
    n_tiles = mask.sum(dim=-1)[..., None, None]
    n_top = n_tiles.clamp(max=n_mask)
    shares = [int(top * mask_drop) for top in range(n_mask + 1)]
    n_hidden = torch.tensor(shares, device=logits.device)[n_top].minimum(n_tiles - 1)
    real = logits.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    place = real.argsort(dim=-2, descending=True, stable=True).argsort(dim=-2)
    return choose(place < n_top, n_hidden, dim=-2)


def diversity(weights: Tensor, branches: int) -> Tensor:
    r"""Mean cosine similarity of the branches' attention maps: 0 if disjoint, 1 if equal.

    .. math:: \frac{2}{K(K-1)} \sum_{r<r'} \cos(\alpha_r, \alpha_{r'})

    for the attention maps :math:`\alpha_r` over the tiles, rows of ``weights`` ``[..., N, R]``
    ordered by branch, then by head. With several heads per branch the maps of the same head are
    compared and averaged, and so are the bags.

    >>> same, apart = torch.tensor([[0.5, 0.5], [0.5, 0.5]]), torch.eye(2)
    >>> round(diversity(same, 2).item(), 6), diversity(apart, 2).item()
    (1.0, 0.0)
    """
    maps = F.normalize(torch.unflatten(weights, -1, (branches, -1)), dim=-3)  # [..., N, K, heads]
    cosines = torch.einsum("...nrh,...nsh->...hrs", maps, maps)
    upper = torch.triu_indices(branches, branches, offset=1, device=weights.device)
    return cosines[..., upper[0], upper[1]].mean()


@objective_of(ACMIL, ACMILMultiHead)
class ACMILObjective(Objective):
    r"""Slide loss, branch losses and diversity, with STKIM (Zhang et al. 2024).

    .. math:: L = \mathrm{CE}(\ell, y) + \frac1K \sum_r \mathrm{CE}(\ell_r, y)
       + \frac{2}{K(K-1)} \sum_{r<r'} \cos(\alpha_r, \alpha_{r'})

    averaged over the bags. With a single branch only the first term is left. All terms see the
    bag without the tiles that :func:`stochastic_topk_mask` hides; a backbone in ``eval`` mode
    sees every tile, so that its loss on a validation set is not random.

    Args:
        n_mask: How many of the strongest tiles of a row may be hidden; 0 turns STKIM off.
        mask_drop: Share of them that is hidden.
    """

    backbone: ACMIL | ACMILMultiHead

    def __init__(
        self, backbone: ACMIL | ACMILMultiHead, *, n_mask: int = 10, mask_drop: float = 0.6
    ) -> None:
        if n_mask < 0:
            raise FociError("n_mask", f"{n_mask} is negative", "choose 0 (off) or more")
        if not 0 <= mask_drop <= 1:
            raise FociError("mask_drop", f"{mask_drop} is not a share", "choose between 0 and 1")
        super().__init__(backbone)
        self.n_mask, self.mask_drop = n_mask, mask_drop

    def forward(self, batch: Batch) -> Tensor:
        """Mean over the batch."""
        model, n_branches = self.backbone, self.backbone.n_branches
        tokens = model.embed(batch.features)
        logits = model.attend(tokens)
        absent = ~batch.mask.unsqueeze(-1)
        if model.training and self.n_mask:
            absent = absent | stochastic_topk_mask(
                logits, batch.mask, n_mask=self.n_mask, mask_drop=self.mask_drop
            )
        weights = torch.softmax(logits.masked_fill(absent, -torch.inf), dim=-2)
        pooled = pool(weights, model.values(tokens))
        terms = {"bag": F.cross_entropy(model.readout(pooled), batch.labels)}
        if n_branches > 1:
            branch_logits = model.branch_logits(pooled).flatten(0, 1)
            branch_labels = batch.labels.repeat_interleave(n_branches)
            terms["branch"] = F.cross_entropy(branch_logits, branch_labels)
            terms["diversity"] = diversity(weights, n_branches)
        return self.named_terms(**terms)


preset("acmil", "paper", ACMIL, d=512, hidden=128, branches=5)
preset("acmil", "official", ACMIL, hidden=128, branches=5)
preset("acmil", "mha", ACMILMultiHead, branches=5, heads=8)
