"""Would slides computed together be faster than one after the other? Eight bags, one thread.

The two kernels that take most of a reveal: projection and gated attention of whole bags, and the
attention of a transformer over subsets of tiles. Packed, the eight bags are one call.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

BAGS = 8


def main() -> None:
    """Print milliseconds apart and packed, and their ratio, for several sizes of a bag."""
    torch.set_num_threads(1)
    for n_tiles, width, hidden in ((1024, 1536, 512), (372, 1280, 128), (40, 192, 256)):
        weights = [torch.randn(hidden, width), *torch.randn(2, 128, hidden)]
        bags = [torch.randn(n_tiles, width) for _ in range(BAGS)]
        what = f"pooling, {n_tiles} tiles of {width}"
        show(what, lambda x, w=weights: gated(x, *w), bags, torch.cat(bags))
    for n_tiles, subsets in ((372, 4), (40, 32), (10, 32)):
        bags = [torch.randn(subsets, 4, n_tiles, 32) for _ in range(BAGS)]
        what = f"transformer, {subsets} subsets of {n_tiles} tiles"
        show(what, lambda x: scaled_dot_product_attention(x, x, x), bags, torch.cat(bags))


def gated(x: Tensor, projection: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Tokens and gated attention of every tile."""
    tokens = torch.relu(x @ projection.T)
    return torch.tanh(tokens @ first.T) * torch.sigmoid(tokens @ second.T)


def show(what: str, step: Callable[[Tensor], Tensor], bags: list[Tensor], packed: Tensor) -> None:
    """Print one size."""
    apart, together = fastest(lambda: [step(bag) for bag in bags]), fastest(lambda: step(packed))
    print(f"{what}: apart {apart * 1e3:.2f} ms, packed {together * 1e3:.2f} ms, "
          f"{apart / together:.2f} times faster packed")  # fmt: skip


def fastest(call: Callable[[], object], repeats: int = 10) -> float:
    """Shortest of several times, after one that does not count."""
    times = []
    for _ in range(repeats + 1):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return min(times[1:])


if __name__ == "__main__":
    main()
