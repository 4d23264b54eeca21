"""Data that the viewer's pages ask for: the cohort once, then one slide at a time."""
