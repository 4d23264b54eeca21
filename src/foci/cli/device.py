"""Choose the torch device of a command."""

from __future__ import annotations

from foci.errors import FociError


def choose(name: str) -> str:
    """Torch device by name; ``"auto"`` is the first GPU if there is one, else the CPU."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise FociError(f"--device {name}", f"cannot be used ({reason})", "use auto") from None
    return name
