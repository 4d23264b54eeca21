"""Arrays in ``.pt`` files, read without executing anything in them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foci.errors import BagError


def load_array(path: Path) -> NDArray[Any]:
    """A tensor or NumPy array saved by ``torch.save``; any other object is refused."""
    import torch

    try:
        with torch.serialization.safe_globals(_numpy_globals()):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise BagError(path, "does not exist", "check the feature folder") from None
    except pickle.UnpicklingError:
        raise BagError(
            path,
            "holds pickled objects, which FOCI does not execute",
            "save the features as a plain tensor: torch.save(tensor, path)",
        ) from None
    except (OSError, RuntimeError, EOFError) as error:
        raise BagError(
            path, f"is not a readable .pt file ({error})", "extract or copy the file again"
        ) from error
    if isinstance(content, torch.Tensor):
        array: NDArray[Any] = content.detach().to(torch.float32).numpy()
        return array
    if isinstance(content, np.ndarray):
        return content
    raise BagError(
        path,
        f"holds a {type(content).__name__}, not one tensor of tile features",
        "save the features as a plain tensor: torch.save(tensor, path)",
    )


def _numpy_globals() -> list[Any]:
    """The globals that a pickled NumPy array needs, and none that can run code."""
    from numpy._core.multiarray import _reconstruct, scalar

    kinds = {type(np.dtype(kind)) for kind in ("f2", "f4", "f8", "i4", "i8")}
    names = ("numpy.core.multiarray", "numpy._core.multiarray")
    return [
        np.ndarray,
        np.dtype,
        *kinds,
        *((_reconstruct, f"{module}._reconstruct") for module in names),
        *((scalar, f"{module}.scalar") for module in names),
    ]
