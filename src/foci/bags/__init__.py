"""Read tile features of the common tools, and the labels and splits of a cohort."""

from foci.bags.bag import Bag, Provenance
from foci.bags.cache import BagCache
from foci.bags.cohort import Cohort
from foci.bags.layouts import LAYOUTS
from foci.bags.read import read_bag
from foci.bags.slide import Skipped, Slide
from foci.bags.store import N_CAP, BagStream, prefilter

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
