"""Read tile features of the common tools, and the labels and splits of a cohort."""

from foci.bags.bag import Bag, Provenance, Skipped, Slide
from foci.bags.cohort import Cohort
from foci.bags.layouts import LAYOUTS, read_bag
from foci.bags.store import N_CAP, BagCache, BagStream, prefilter

__all__ = [
    "LAYOUTS",
    "N_CAP",
    "Bag",
    "BagCache",
    "BagStream",
    "Cohort",
    "Provenance",
    "Skipped",
    "Slide",
    "prefilter",
    "read_bag",
]
