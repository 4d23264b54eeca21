"""Arrays in ``.pt`` files, read without executing anything in them."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foci.bags.layouts.boundary import check_file, check_size, unopened
from foci.bags.layouts.numbers import check_floating
from foci.bags.layouts.pickle_size import check_pickle
from foci.errors import BagError, FociError

if TYPE_CHECKING:
    from torch import Tensor

_PICKLES_OF_OLD_FILES = 4
"""Magic number, version, machine, content: what precedes the numbers in files before torch 1.6."""


def load_array(path: Path) -> NDArray[Any]:
    """A tensor or NumPy array saved by ``torch.save``; any other object is refused."""
    import torch

    check_file(path)
    try:
        with path.open("rb") as file:
            _check_before(file, path)
        with torch.serialization.safe_globals(_numpy_globals()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on the pickle's protocol, which changes nothing
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FociError:
        raise
    except (FileNotFoundError, PermissionError) as error:
        raise unopened(path, error) from None
    except pickle.UnpicklingError:
        raise BagError(
            path,
            "holds pickled objects, which FOCI does not execute",
            "save the features as a plain tensor: torch.save(tensor, path)",
        ) from None
    except MemoryError:
        raise
    except Exception as error:  # torch raises whatever the damaged bytes lead to
        raise BagError(
            path, f"is not a readable .pt file ({error})", "extract or copy the file again"
        ) from error
    if isinstance(content, torch.Tensor):
        return _dense(content, path)
    if isinstance(content, np.ndarray):
        check_size(content.shape, content.dtype.itemsize, path)
        return content
    raise BagError(
        path,
        f"holds a {type(content).__name__}, not one tensor of tile features",
        "save the features as a plain tensor: torch.save(tensor, path)",
    )


def _check_before(file: IO[bytes], path: Path) -> None:
    """Check sizes before torch allocates: records of the archive, parts of the pickle."""
    if not zipfile.is_zipfile(file):
        file.seek(0)
        end = path.stat().st_size
        for _ in range(_PICKLES_OF_OLD_FILES):
            if file.tell() < end:
                check_pickle(file)
        return
    with zipfile.ZipFile(file) as archive:
        for record in archive.infolist():
            check_size((record.file_size,), 1, path)
            if record.filename.endswith(".pkl"):
                with archive.open(record) as content:
                    check_pickle(content)


def _dense(tensor: Tensor, path: Path) -> NDArray[Any]:
    """A plain tensor as an array; half of the kinds of tensors that torch has are none."""
    import torch

    kinds = {
        "sparse": tensor.layout is not torch.strided,
        "quantised": tensor.is_quantized,
        "meta": tensor.is_meta,
        "nested": tensor.is_nested,
    }
    for kind, is_one in kinds.items():
        if is_one:
            what, fix = f"holds a {kind} tensor, not plain numbers", "save it as a plain tensor"
            raise BagError(path, what, f"{fix}: torch.save(tensor, path)")
    check_floating(tensor.dtype, tensor.is_floating_point(), path)
    check_size(tuple(tensor.shape), tensor.element_size(), path)
    array: NDArray[Any] = tensor.detach().to(torch.float32).resolve_neg().numpy()
    return array


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
