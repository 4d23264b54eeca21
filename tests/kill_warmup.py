"""Importing this runs every piece of work of the kill harness once, in a folder of its own.

The process that all cases are forked from imports it, so that no case pays for what the libraries
do on first use: that costs five times as much as a small audit.
"""

import tempfile
from pathlib import Path

from tests.kills import WORK
from tests.makers.cohorts import make_files

with tempfile.TemporaryDirectory() as folder:
    files = make_files(Path(folder, "files"))
    for name, work in WORK.items():
        work(files, Path(folder, name))
