"""Build the site: ``python -m tools.site``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.site.gallery import hang
from tools.site.links import problems
from tools.site.pages import ROOT, gather

PAGES, SITE, RUNS = (ROOT / "build" / name for name in ("pages", "site", "gallery"))


def main() -> int:
    """Gather the pages, make the gallery, render, check the links; 1 if there is any warning."""
    gather(PAGES)
    page = PAGES / "gallery.md"
    page.write_text(hang(page.read_text(encoding="utf-8"), RUNS, PAGES / "gallery"), "utf-8")
    if not render(ROOT / "zensical.toml"):
        return 1
    found = problems(SITE.resolve())
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.stdout.write(f"{len(found)} problems\n" if found else f"Open {SITE / 'index.html'}\n")
    return 1 if found else 0


def render(configuration: Path) -> bool:
    """Run Zensical; False if it warns of anything."""
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f"]
    return subprocess.call([*command, str(configuration)], cwd=ROOT) == 0  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
