"""One torch thread per worker: several workers share two cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile("foci", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("foci")
