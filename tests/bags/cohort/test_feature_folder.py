"""Finding feature files in the folders that tools leave behind."""

from pathlib import Path

import numpy as np
import pytest

from foci.bags.matching import find_features
from foci.errors import BagError
from tests.makers import features as write

X = write.features()
XY = write.grid()


def test_clam_results_folder_prefers_h5_and_skips_patches(tmp_path: Path) -> None:
    write.clam_h5(tmp_path, "a", X, XY)
    write.clam_pt(tmp_path, "a", X)
    write.clam_pt(tmp_path, "b", X)
    found = find_features(tmp_path)
    assert {name: path.suffix for name, path in found.items()} == {"a": ".h5", "b": ".pt"}


def test_trident_and_slideflow_sidecars_are_not_slides(tmp_path: Path) -> None:
    write.trident(tmp_path / "20x" / "features_uni" / "t.h5", X, XY)
    write.trident(tmp_path / "20x" / "patches" / "t_patches.h5", X, XY)
    write.slideflow(tmp_path / "s.pt", X, XY)
    (tmp_path / ".writing-x.h5").touch()
    assert sorted(find_features(tmp_path)) == ["s", "t"]


def test_dots_in_slide_names_survive(tmp_path: Path) -> None:
    write.uni2h(tmp_path / f"TCGA-05-4244-01Z-00-DX1.{write.UUID}.h5", X, XY)
    assert list(find_features(tmp_path)) == [f"TCGA-05-4244-01Z-00-DX1.{write.UUID}"]


def test_two_encoders_in_one_folder_are_refused(tmp_path: Path) -> None:
    write.trident(tmp_path / "features_uni" / "t.h5", X, XY)
    write.trident(tmp_path / "features_conch" / "t.h5", X, XY)
    with pytest.raises(BagError, match=r"slide 't' is also in .*one encoder"):
        find_features(tmp_path)


def test_a_link_that_leads_back_up_is_followed_once(tmp_path: Path) -> None:
    write.trident(tmp_path / "a" / "t.h5", X, XY)
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert list(find_features(tmp_path)) == ["t"]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(BagError, match=r"gone: does not exist; give the folder"):
        find_features(tmp_path / "gone")
    np.savetxt(tmp_path / "notes.txt", X)
    with pytest.raises(BagError, match=r"holds no feature files \(\.h5"):
        find_features(tmp_path)
    with pytest.raises(BagError, match=r"notes\.txt: is not a folder"):
        find_features(tmp_path / "notes.txt")
