"""Metrics over the slides of a cohort."""
