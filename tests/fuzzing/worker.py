"""Run cases one after another and say what became of each; the harness watches from outside.

A line announces a case before it runs, so that the harness knows which one hangs or ends the
process.
"""

import json
import os
import resource
import shutil
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

from foci.errors import FociError
from tests.fuzzing.mutations import PIPE, become_a_pipe
from tests.fuzzing.subjects import SUBJECTS

LONGEST = 1300
ADDRESS_SPACE = 16 * 2**30
"""So that an escaping allocation ends the case and not the machine."""


def run(case: int, seed: int, good: Path, place: Path) -> tuple[str, str]:
    """Damage one file, read it, and name the outcome: read, refused, or what went wrong."""
    name, subject = list(SUBJECTS.items())[case % len(SUBJECTS)]
    rng = np.random.default_rng([seed, case])
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(good / str(case % len(SUBJECTS)), place)
    file = place / subject.file
    content, mutations = file.read_bytes(), (*subject.mutations, become_a_pipe)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        try:
            content = mutations[int(rng.integers(len(mutations)))](content, rng)
        except Exception:
            break  # an earlier mutation has left nothing to edit
    if content == PIPE:
        file.unlink()
        os.mkfifo(file)
    else:
        file.write_bytes(content)
    try:
        subject.read(place)
    except FociError as error:
        said = str(error)
        tidy = "\n" not in said and said.isprintable() and len(said) < LONGEST
        return ("refused", name) if tidy else ("untidy", f"{name}: {said}")
    except OSError as error:  # one line at the command line; for a feature file it is too late
        feature = subject.read.__qualname__.startswith("bag.")
        return ("escaped", f"{name}: {error!r}") if feature else ("refused", name)
    except Exception:
        return "escaped", f"{name}: {traceback.format_exc()[-1500:]}"
    return "read", name


def main(seed: int, first: int, beyond: int, good: str, place: str) -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for case in range(first, beyond):
        _say(case, "started", "", 0.0, 0)
        start = time.process_time()
        outcome, what = run(case, seed, Path(good), Path(place))
        seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        _say(case, outcome, what, seconds, peak)


def _say(*line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), *sys.argv[4:])
