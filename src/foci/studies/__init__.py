"""Studies: cohorts x backbones x seeds from one file, as cells that run anywhere."""
