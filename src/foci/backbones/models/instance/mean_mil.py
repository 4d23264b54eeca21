"""Mean pooling: the average of what a small network says of every tile."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from foci.backbones.base import Capabilities
from foci.backbones.layers.mlp import head, projection
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.registry import architecture, preset


@architecture("mean-mil")
class MeanMIL(PooledBackbone):
    r"""Mean of the tiles' logits, which is the head on the mean token.

    .. math:: h_i = \mathrm{ReLU}(W x_i), \qquad
       \ell = \frac1N \sum_i (U h_i + b) = U \Big(\frac1N \sum_i h_i\Big) + b

    It is attention pooling with equal weights. There is no attention to rank tiles by; the stand-in
    is the tile's own logit for the class that the full bag predicts. Trained with cross-entropy.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d: Token width.
        projection_bias: Whether the projection has a bias.
        projection_activation: ``"relu"`` or ``"gelu"``.
        dropout: After the projection, while training.
    """

    def __init__(
        self,
        d_in: int,
        n_classes: int,
        *,
        d: int,
        projection_bias: bool = True,
        projection_activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(d_in, n_classes, d_token=d)
        self.projection = projection(
            d_in, d, bias=projection_bias, dropout=dropout, activation=projection_activation
        )
        self.head = head(d, n_classes, None)
        self.homogeneous = not projection_bias and projection_activation == "relu"

    @property
    def capabilities(self) -> Capabilities:
        """As every pooling, but the tile score is a stand-in."""
        return replace(super().capabilities, score="proxy")

    def attend(self, tokens: Tensor) -> Tensor:
        """The same attention logit, 0, for every tile."""
        return tokens.new_zeros((*tokens.shape[:-1], 1))

    def scores(self, tokens: Tensor) -> Tensor:
        r"""The tile's logit :math:`\ell_{\hat c}(\{i\})` of the class that all tokens predict."""
        logits: Tensor = self.head(tokens)
        return logits[:, int(logits.mean(dim=0).argmax())]


preset("mean-mil", "official", MeanMIL, d=512, dropout=0.25)
