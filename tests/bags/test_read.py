"""Bad feature files: one line with the file, what is wrong and what to do."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from foci.bags import read_bag
from foci.errors import BagError, EmptyBagError, FociError, NotFiniteError
from tests.makers import features as write

X = write.features()
XY = write.grid()


def refusal(path: Path, kind: type[FociError] = BagError) -> str:
    with pytest.raises(kind) as caught:
        read_bag(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message
    assert caught.value.fix
    return message


def test_truncated_hdf5(tmp_path: Path) -> None:
    path = write.trident(tmp_path / "cut.h5", write.features(2000, 64), write.grid(2000))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "truncated" in refusal(path)


def test_damaged_chunk(tmp_path: Path) -> None:
    path = tmp_path / "hole.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("features", data=X, chunks=X.shape, fletcher32=True)
        start = dataset.id.get_chunk_info(0).byte_offset
    content = bytearray(path.read_bytes())
    content[start + 5] ^= 0xFF
    path.write_bytes(content)
    assert "cannot be read" in refusal(path)


@pytest.mark.parametrize(("content", "what"), [(b"", "is empty"), (b"<html>", "not an HDF5 file")])
def test_not_hdf5(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "web.h5").write_bytes(content)
    assert what in refusal(tmp_path / "web.h5")


@pytest.mark.parametrize("name", ["a.pt", "a.npz", "a.npy"])
def test_not_the_format_its_ending_says(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"nonsense")
    refusal(tmp_path / name)


def test_missing_file(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "gone.h5")


@pytest.mark.parametrize("shape", [(0, 6), (0,), (1, 0, 6)])
def test_zero_tiles(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = write.trident(tmp_path / "bare.h5", np.zeros(shape, np.float32), np.zeros((0, 2)))
    assert "has no tiles" in refusal(path, EmptyBagError)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite(tmp_path: Path, value: float) -> None:
    x = X.copy()
    x[3:5, 0] = value
    path = write.trident(tmp_path / "nan.h5", x, XY)
    message = refusal(path, NotFiniteError)
    assert "2 of 12 tiles hold NaN or Inf (first: tile 3)" in message


def test_one_vector_per_slide(tmp_path: Path) -> None:
    path = write.trident(tmp_path / "slide.h5", X[0], XY[:1])
    assert "one vector per slide cannot be audited" in refusal(path)


def test_more_than_one_bag(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", features=np.stack([X, X]))
    assert "shape 2 x 12 x 6" in refusal(tmp_path / "two.npz")


def test_integers_are_not_features(tmp_path: Path) -> None:
    np.savez(tmp_path / "ints.npz", features=np.ones((3, 2), np.int32))
    assert "features are int32" in refusal(tmp_path / "ints.npz")


def test_coordinates_of_another_length_or_shape(tmp_path: Path) -> None:
    path = write.trident(tmp_path / "off.h5", X, XY[:7])
    assert "has 7 coordinates for 12 tiles" in refusal(path)
    wide = write.trident(tmp_path / "five.h5", X, np.zeros((12, 5)))
    assert "coords have shape 12 x 5" in refusal(wide)
    np.savez(tmp_path / "lost.npz", features=X, coords=np.full((12, 2), np.nan))
    assert "coordinates hold NaN" in refusal(tmp_path / "lost.npz")


def test_npz_without_features_lists_what_it_holds(tmp_path: Path) -> None:
    np.savez(tmp_path / "odd.npz", embeddings=X)
    assert "it holds embeddings" in refusal(tmp_path / "odd.npz")
