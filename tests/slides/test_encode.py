"""Encoding a folder: TRIDENT's layout, resuming after a kill, bad slides."""

import json
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci.bags import read_bag
from foci.errors import FociError
from foci.slides.encode import EncodedFolder, encode_slides
from foci.slides.encoders import ENCODERS, Encoder, EncoderOptions
from foci.slides.find import every_image
from foci.slides.image import SlideImage
from foci.slides.tiling import TilingSettings
from tests.makers.slides import squares, write_slide

TOY = ENCODERS["toy"](EncoderOptions())


@pytest.fixture(scope="module")
def slides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slides")
    for number, shape in enumerate([(3, 2), (2, 2), (4, 1)]):
        write_slide(folder / f"s{number}.tiff", squares(*shape, 256), levels=())
    return folder


def encode(slides: Path, out: Path, encoder: Encoder = TOY, **how: Any) -> EncodedFolder:
    how = {"tiling": TilingSettings(), "batch": 4, **how}
    return encode_slides(every_image(slides), out, encoder, **how)


def content(folder: Path) -> dict[str, Any]:
    """Features and coordinates of every file."""
    bags = {path.name: read_bag(path) for path in folder.glob("*.h5")}
    return {name: (bag.features.tobytes(), bag.coords.tolist()) for name, bag in bags.items()}  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def whole(slides: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return content(encode(slides, tmp_path_factory.mktemp("whole")).folder)


def test_files_are_trident_s(slides: Path, tmp_path: Path) -> None:
    done = encode(slides, tmp_path)
    assert done.folder == tmp_path / "20x_256px_0px_overlap" / "features_toy"
    bag = read_bag(done.folder / "s0.h5")
    assert bag.provenance.layout == "trident"
    assert bag.provenance.encoder == "toy"
    assert (len(bag), bag.width, bag.patch_size, bag.unit) == (6, 48, 256, "px")
    with SlideImage(slides / "s0.tiff") as slide:
        assert bag.coords is not None
        for features, (x, y) in zip(bag.features, bag.coords, strict=True):
            tile = np.asarray(slide._slide.read_region((x, y), 0, (256, 256)))[None, ..., :3]
            assert np.array_equal(features, TOY.encode(tile)[0])
    manifest = json.loads((done.folder / "encode.json").read_text())
    assert [slide["tiles"] for slide in manifest["slides"]] == [6, 4, 4]
    assert manifest["slides"][0]["how"] == "name"


def test_a_second_run_reads_no_slide(
    slides: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = encode(slides, tmp_path)
    monkeypatch.setattr("foci.slides.encode.encode_slide", None)
    assert encode(slides, tmp_path) == first


def test_a_changed_slide_or_a_damaged_file_is_encoded_again(slides: Path, tmp_path: Path) -> None:
    folder = tmp_path / "slides"
    write_slide(folder / "a.tiff", squares(2, 2, 256), levels=())
    write_slide(folder / "b.tiff", squares(2, 2, 256), levels=())
    done = encode(folder, tmp_path / "out")
    write_slide(folder / "a.tiff", squares(3, 1, 256), levels=())
    (done.folder / "b.h5").write_bytes((done.folder / "b.h5").read_bytes()[:600])
    again = encode(folder, tmp_path / "out")
    assert [slide.tiles for slide in again.slides] == [3, 4]
    assert len(read_bag(done.folder / "b.h5")) == 4


def test_the_manifest_keeps_the_slides_of_earlier_runs(slides: Path, tmp_path: Path) -> None:
    done = encode(slides, tmp_path / "out")
    encode(write_slide(tmp_path / "more.tiff", squares(2, 1, 256), levels=()), tmp_path / "out")
    manifest = json.loads((done.folder / "encode.json").read_text())
    assert [slide["slide_id"] for slide in manifest["slides"]] == ["s0", "s1", "s2", "more"]


def test_other_settings_are_refused(slides: Path, tmp_path: Path) -> None:
    encode(slides, tmp_path)
    other = TilingSettings(min_tissue=0.9)
    with pytest.raises(FociError, match=r"features of other settings \(tiling"):
        encode(slides, tmp_path, tiling=other)
    assert len(encode(slides, tmp_path, tiling=other, force=True).slides) == 3


@pytest.mark.parametrize(
    ("number", "found"), [(2, "is of format 2"), (None, "has no format number")]
)
def test_another_format_is_refused_in_one_line(
    slides: Path, tmp_path: Path, number: int | None, found: str
) -> None:
    path = encode(slides, tmp_path).folder / "encode.json"
    manifest = json.loads(path.read_text())
    assert manifest["format"] == 1
    path.write_text(json.dumps({**manifest, "format": number}))
    with pytest.raises(FociError) as refused:
        encode(slides, tmp_path)
    assert str(refused.value) == (
        f"{path}: {found}, this FOCI reads format 1; choose another --out, or --force, or use the "
        "FOCI that wrote it"
    )
    path.write_text("[]")
    with pytest.raises(FociError, match=r"encode\.json: cannot be read; delete it"):
        encode(slides, tmp_path)


def killed_at(event: int, run: Callable[[Encoder], object]) -> bool:
    """Run in a child that kills itself at its n-th write or batch; whether it was killed."""
    child = os.fork()
    if child == 0:
        left = event

        def count(inner: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*arguments: Any, **named: Any) -> Any:
                nonlocal left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return inner(*arguments, **named)

            return counted

        os.fsync = count(os.fsync)
        Path.replace = count(Path.replace)  # type: ignore[method-assign]
        try:
            run(Encoder("toy", TOY.width, count(TOY.encode)))
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_killed_at_any_moment_it_resumes_to_the_same_features(
    slides: Path, tmp_path: Path, whole: dict[str, Any]
) -> None:
    event = 1
    while killed_at(event, partial(encode, slides, tmp_path / str(event))):
        out = tmp_path / str(event)
        left = content(out / "20x_256px_0px_overlap" / "features_toy")
        assert left == {name: whole[name] for name in left}, "what is there is whole"
        done = encode(slides, out)
        assert content(done.folder) == whole
        assert {path.suffix for path in done.folder.iterdir()} == {".h5", ".json"}
        event += 1
    assert event > 10, "batches, writes and renames of three slides and the manifest"


def test_bad_slides_cost_only_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "slides"
    good = squares(3, 3, 256)
    write_slide(folder / "good.tiff", good)
    whole = (folder / "good.tiff").read_bytes()
    (folder / "cut.tiff").write_bytes(whole[: len(whole) // 2])
    (folder / "text.svs").write_text("a text")
    write_slide(folder / "coarse.tiff", good, mpp=2.0)
    write_slide(folder / "unknown.tiff", good, mpp=None)
    write_slide(folder / "glass.tiff", np.full((512, 512, 3), 250, dtype=np.uint8))
    write_slide(folder / "vanishes.tiff", good)
    write_slide(folder / "locked.tiff", good)
    opened = Path.open

    def locked(path: Path, *arguments: Any, **named: Any) -> Any:
        if path.name == "locked.tiff":  # as root every file can be read
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **named)

    vanishing = folder / "vanishes.tiff"
    monkeypatch.setattr(Path, "open", locked)
    read, one_at_a_time = SlideImage.read, threading.Lock()

    def reading(slide: SlideImage, box: Any, size: tuple[int, int]) -> Any:
        with one_at_a_time:
            if slide.path == vanishing and size == (256, 256) and vanishing.exists():
                with vanishing.open("r+b") as file:
                    vanishing.unlink()
                    file.truncate()  # what is open already is empty too
        return read(slide, box, size)

    monkeypatch.setattr(SlideImage, "read", reading)
    done = encode(folder, tmp_path / "out")
    assert [slide.slide_id for slide in done.slides] == ["good"]
    reasons = {slide.slide_id: slide.reason for slide in done.skipped}
    words = {
        "cut": "cut short",
        "text": "is no whole-slide image",
        "coarse": "2 um per pixel, coarser",
        "unknown": "does not say its resolution",
        "glass": "holds no tissue",
        "vanishes": "has vanished",
        "locked": "permission denied",
    }
    assert set(reasons) == set(words)
    for name, word in words.items():
        assert word in reasons[name]
        assert f"{name}." in reasons[name]
    lines = caplog.messages
    assert len(lines) == len(words)
    assert all(line.startswith("skipped ") and "\n" not in line for line in lines)
    assert [path.name for path in done.folder.glob("*.h5")] == ["good.h5"]
