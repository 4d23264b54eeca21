"""The viewer in headless Chromium against its targets: opening, tiles, slider, gallery, load.

It paints its own slides and audits a small classifier on them. ``--data FOLDER`` keeps them there
and uses them again. Every figure is a median over repeats, and the best of them beside it: on a
machine that others use, the best is nearer to what the viewer costs.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

from viewer_material import make

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
READERS, HALF_OPEN = 8, 1000

OPEN = """async ([slide, more]) => {
    const start = performance.now();
    location.hash = `screen=slide&slide=${slide}${more}`;
    const loaded = () => document.querySelector('#slide-name')?.textContent === slide
        && document.querySelectorAll('.stage[data-loaded=true]').length === 2;
    await new Promise((done) => {
        const look = () => loaded() ? done() : requestAnimationFrame(look);
        requestAnimationFrame(look);
    });
    return performance.now() - start;
}"""
SLIDE = """async ([repeats]) => {
    const slider = document.querySelector('#k-slider');
    const [low, high] = [Number(slider.min), Number(slider.max)];
    const times = [];
    for (let i = 0; i < repeats; i++) {
        await new Promise(requestAnimationFrame);
        slider.value = String(low + (high - low) * (i % 2 ? 1 : 0.96));
        const start = performance.now();
        slider.dispatchEvent(new Event('input', {bubbles: true}));
        for (const canvas of document.querySelectorAll('canvas.over'))
            canvas.getContext('2d').getImageData(0, 0, 1, 1);
        times.push(performance.now() - start);
    }
    return times;
}"""
TILES = """async ([number, repeats]) => {
    const slide = await (await fetch(`api/slides/${number}`)).json();
    const {finest, version} = slide.pyramid;
    const urls = [];
    for (let x = 0; x < 6; x++) for (let y = 0; y < 6; y++)
        urls.push(`api/slides/${number}/parts/${finest}/${x}_${y}.jpeg?v=${version}`);
    for (const url of urls) await (await fetch(url, {cache: 'no-store'})).blob();
    const times = [];
    for (let i = 0; i < repeats; i++) {
        const start = performance.now();
        await (await fetch(urls[i % urls.length], {cache: 'no-store'})).blob();
        times.push(performance.now() - start);
    }
    return times;
}"""
GALLERY = """async (slide) => {
    const start = performance.now();
    location.hash = `screen=slide&slide=${slide}&k=64`;
    await new Promise((done) => {
        const look = () => {
            const images = [...document.querySelectorAll('.pictures img')];
            const whole = document.querySelector('#slide-name')?.textContent === slide
                && images.length === 64 && images.every((one) => one.complete);
            return whole ? done() : requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    });
    return performance.now() - start;
}"""


def main() -> None:
    """Print every figure with its target."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, help="folder for slides and audit, kept")
    parser.add_argument("--seconds", type=float, default=60, help="of load")
    parser.add_argument("--starve-only", action="store_true", help="only half-open connections")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = options.data or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        audit = folder / "audit"
        if not audit.is_dir():
            make(folder)
        address, process = stack.enter_context(serving(audit, folder))
        if not options.starve_only:
            measure(address, process.pid, options.seconds)
        starve(address, options.seconds)
        print(f"the server has written {(folder / 'log').stat().st_size} bytes (target 100 kB)")


def measure(address: str, pid: int, seconds: float) -> None:
    """All figures of one server, in the order in which a reader would cause them."""
    print(f"machine: {slowness():.1f} s for a second of computing")
    print(f"server at rest: {memory(pid)}")
    with sync_playwright() as driver:
        path = next(found for name in BROWSERS if (found := shutil.which(name)))
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.wait_for_selector("#slides-table", timeout=180_000)
        opened = [page.evaluate(OPEN, [f"small-{number:02d}", ""]) for number in range(10)]
        show("slide open, cold (target 1500 ms)", opened)
        print(f"server with ten slides open (target 500 MB): {memory(pid)}")
        warm = page.evaluate(TILES, [0, 200])
        show("warm tile (target p95 100 ms)", warm)
        for heat in (False, True):
            slider(page, "small-00", heat, "1,024 tiles (target 16 ms)")
            slider(page, "large", heat, "30,000 tiles (target 50 ms)")
        pictures = [page.evaluate(GALLERY, f"small-{number:02d}") for number in range(10, 14)]
        show("64 pictures of tiles, cold (target 800 ms)", pictures)
        own = urlsplit(address).netloc
        abroad = [url for url in asked if urlsplit(url).netloc not in (own, "")]
        print(f"requests: {len(asked)}, to elsewhere: {len(abroad)}")
        print(f"machine: {slowness():.1f} s for a second of computing")
        load(address, seconds)
        print(f"server after all of it: {memory(pid)}")
        browser.close()


def slider(page: Page, slide: str, heat: bool, what: str) -> None:
    """From a move of the slider at its end, where all tiles are revealed, to painted tiles."""
    page.evaluate(OPEN, [slide, "&k=30000"])
    page.get_by_label("heat map, dark is first").set_checked(heat)
    cdp = page.context.new_cdp_session(page)
    cdp.send("Performance.enable", {"timeDomain": "threadTicks"})

    def computed() -> float:
        metrics = cdp.send("Performance.getMetrics")["metrics"]
        seconds = next(one["value"] for one in metrics if one["name"] == "ScriptDuration")
        return 1000 * float(seconds)

    before, times = computed(), page.evaluate(SLIDE, [40])
    spent = (computed() - before) / len(times)
    show(f"slider to repaint{', heat map on' if heat else ''}, {what}", times)
    print(f"  processor time of the page's script: {spent:.1f} ms each")


def starve(address: str, seconds: float) -> None:
    """Half-open connections, opened again as soon as the server closes them, beside readers."""
    own, end = urlsplit(address), time.monotonic() + seconds + 5
    opened = [0]

    def hold() -> None:
        held: dict[int, socket.socket] = {}
        while time.monotonic() < end:
            for number in range(HALF_OPEN):
                with contextlib.suppress(OSError):
                    if number not in held or closed(held[number]):
                        held[number] = socket.create_connection((own.hostname, own.port), 5)
                        held[number].send(b"GET / HTTP/1.1\r\nHost: " if number % 2 else b"")
                        opened[0] += 1
            time.sleep(0.5)
        for one in held.values():
            one.close()

    def closed(one: socket.socket) -> bool:
        one.setblocking(False)
        try:
            return one.recv(1) == b""
        except BlockingIOError:
            return False

    attacker = threading.Thread(target=hold)
    attacker.start()
    time.sleep(5)
    load(address, seconds, warm=True)
    attacker.join()
    print(f"  beside {HALF_OPEN} half-open connections, {opened[0]} opened in all")


def load(address: str, seconds: float, *, warm: bool = False) -> None:
    """Readers that ask for random tiles, or for a few that were read before, at the same time."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(address) as opened:
        address = opened.url.rstrip("/")
    columns, rows = (4, 4) if warm else (20, 16)
    times: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + seconds

    def read(seed: int) -> None:
        draw = random.Random(seed)
        while time.monotonic() < end:
            slide, x, y = draw.randrange(10), draw.randrange(columns), draw.randrange(rows)
            url = f"{address}/api/slides/{slide}/parts/14/{x}_{y}.jpeg"
            start = time.monotonic()
            try:
                with browser.open(url, timeout=30) as answer:
                    whole = answer.read().startswith(b"\xff\xd8")
                if not whole:
                    errors.append(f"{url}: no JPEG")
            except OSError as error:
                errors.append(f"{url}: {error}")
            times.append(1000 * (time.monotonic() - start))

    if warm:
        for slide, x, y in itertools.product(range(10), range(columns), range(rows)):
            with browser.open(f"{address}/api/slides/{slide}/parts/14/{x}_{y}.jpeg") as answer:
                answer.read()
        end = time.monotonic() + seconds
    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(READERS)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    print(f"{READERS} readers for {seconds:g} s: {len(times)} tiles, {len(errors)} errors")
    for error in errors[:3]:
        print(f"  {error}")
    show("  a tile among them", times)


@contextlib.contextmanager
def serving(audit: Path, folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """``foci view`` in a process of its own."""
    slides = folder / "slides"
    command = [sys.executable, "-m", "foci", "view", str(audit), "--slides", str(slides)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--no-browser"], stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        address = next(found[1] for line in lines if (found := re.match(r"viewer: (\S+)", line)))
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(
                    (urlsplit(address).hostname, urlsplit(address).port)
                ).close()
                break
            time.sleep(0.1)
        yield address, process
    finally:
        process.terminate()
        process.wait()


def slowness() -> float:
    """Seconds that pass while this process computes for one: 1 on a machine of one's own."""
    start, used = time.perf_counter(), time.process_time()
    while time.process_time() - used < 0.5:
        pass
    return (time.perf_counter() - start) / 0.5


def memory(pid: int) -> str:
    """Memory of a process: resident, its own part of it, and the largest so far."""
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    now, own, most = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon", "VmHWM"))
    return f"{now:.0f} MB, {own:.0f} MB of them its own, at most {most:.0f} MB"


def show(what: str, times: list[float]) -> None:
    """Median, 95th percentile and best of some times in milliseconds."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    median = statistics.median(ordered)
    print(f"{what}: median {median:.1f} ms, p95 {p95:.1f} ms, best {ordered[0]:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
