"""A training step through FOCI's contract against the same model written straight in PyTorch.

Paper presets of ABMIL (gated attention pooling) and TransMIL (transformer encoder), batch of one
bag of 1,024 x 1,536; forward, cross-entropy, backward, AdamW.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import foci
from foci.backbones import pad
from timing import seconds

N, D, C = 1024, 1536, 2


class PlainABMIL(nn.Module):
    """Gated attention pooling in a dozen lines."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(D, 256, bias=False)
        self.v, self.u, self.w = nn.Linear(256, 128), nn.Linear(256, 128), nn.Linear(128, 1)
        self.head = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, C))

    def forward(self, x: Tensor) -> Tensor:
        """One bag ``[N, D]`` to logits ``[1, C]``."""
        h = torch.relu(self.projection(x))
        a = self.w(torch.tanh(self.v(h)) * torch.sigmoid(self.u(h)))
        return self.head(torch.softmax(a, dim=0).T @ h)


class PlainTransMIL(nn.Module):
    """PyTorch's own encoder with a CLS token."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(D, 512, bias=False)
        self.cls = nn.Parameter(torch.randn(1, 1, 512))
        layer = nn.TransformerEncoderLayer(512, 8, 2048, 0.0, "gelu", batch_first=True,
                                           norm_first=True)  # fmt: skip
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Sequential(
            nn.LayerNorm(512), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, C)
        )

    def forward(self, x: Tensor) -> Tensor:
        """One bag ``[N, D]`` to logits ``[1, C]``."""
        h = torch.cat([self.cls, torch.relu(self.projection(x))[None]], dim=1)
        return self.head(self.encoder(h)[:, 0])


def main() -> None:
    """Print the ratio for both."""
    torch.manual_seed(0)
    x, y = torch.randn(N, D), torch.tensor([1])
    batch = pad([x], [1])
    for name, plain, repeats in (("abmil", PlainABMIL(), 15), ("transmil", PlainTransMIL(), 3)):
        ours = foci.backbones.create(name, d_in=D, n_classes=C).train()
        objective = ours.make_objective()
        straight = step(plain, lambda m=plain: F.cross_entropy(m(x), y))
        contract = step(ours, lambda o=objective: o(batch))
        base, own = seconds(straight, repeats), seconds(contract, repeats)
        base = (base + seconds(straight, repeats)) / 2
        print(
            f"{name:9s} step through the contract: {own / base:.2f} of plain PyTorch (at most 1.3)"
        )


def step(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """One optimizer step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()

    return run


if __name__ == "__main__":
    main()
