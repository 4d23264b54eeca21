"""A commented ``study.yaml`` to start from."""

from __future__ import annotations

from foci.audits.profiles import FOCI, PAPER
from foci.errors import FociError

_HEAD = """\
# A study: cohorts x backbones x seeds. Paths start from this file. Next:
#   foci study plan .     which cells there are, and how long they will take
#   foci study run .      run them; give the same command again to go on
#   foci study tables .   tables, figures and study.html from what is there
format: 1
name: {name}
profile: {profile}        # fills in everything that is not given here; {other} is the other one
seeds: [{seeds}]          # each trains every backbone once and fits its selector
n_cap: 1024               # most tiles per bag

cohorts:                  # one line each; the options of foci audit
  mine:
    features: features    # folder of feature files, in any layout FOCI knows
    labels: labels.csv    # slide_id, case_id, label, split
    # classes: [LUAD, LUSC]
    # splits: splits      # CLAM's folder: all folds of it are run and pooled
    # objective: {{clam-sb: {{subtyping: true}}}}
"""

_BACKBONES = """
# backbones:              # instead of the paper's seven
#   abmil: {training: {epochs: 20, lr: 2e-4}}
#   clam-sb: {}
#   transmil: {widths: {d: 128}}
#   mine: {architecture: abmil, models: {mine: {SEED: checkpoint.pt}}}
"""

_PAPER = """
# audit: {recipe: paper-ste, fit_target: label, kappa: 0.9, k_max: 256, random_orders: 10}
# read: {kappas: [0.7, 0.8, 0.9, 0.95], budgets: [32, 256], selected_k: [8, 16, 32, 64, 128]}
# sweeps:                 # instead of the paper's: {} for none
#   adaptive: {recipes: [paper-adaptive], backbones: [transmil]}
#   losses: {recipes: [no-suff, no-excl, no-contig], backbones: [transmil], cohorts: [mine]}
#   lambda: {vary: {weights.hinge: [0.5, 2.0]}, backbones: [transmil], cohorts: [mine]}
#   n_cap: {values: [256, 512, 2048], backbones: [transmil]}
#   joint: {epochs: 2, backbones: [transmil], cohorts: [mine]}
# efficiency: {cohort: mine, slides: 20, repeats: 9}     # null for no measurement
# overlays: {cohort: mine, slides: [ID], top: 32, rankings: [transmil/native, transmil/selector]}
# published: true         # the paper's numbers beside one's own
"""

_FOCI = """
# audit: {kappa: 0.9, k_max: 256, random_orders: 10}     # any setting of foci audit
# sweeps: {gate: {recipes: [paper-ste], backbones: [transmil]}}
# efficiency: {cohort: mine, slides: 20, repeats: 9}     # null for no measurement
"""


def template(name: str, profile: str = PAPER) -> str:
    """Text of a new ``study.yaml``.

    Args:
        name: Of the study.
        profile: ``"paper"`` or ``"foci"``.
    """
    if profile not in (PAPER, FOCI):
        raise FociError("--profile", f"cannot be {profile!r}", f"choose {PAPER} or {FOCI}")
    paper = profile == PAPER
    seeds = (42, 43, 44) if paper else (0, 1, 2)
    head = _HEAD.format(
        name=name,
        profile=profile,
        other=FOCI if paper else PAPER,
        seeds=", ".join(map(str, seeds)),
    )
    backbones = _BACKBONES.replace("SEED", str(seeds[0]))
    return head + backbones + (_PAPER if paper else _FOCI)
