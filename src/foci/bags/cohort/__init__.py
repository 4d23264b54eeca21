"""A cohort: its slides, their patients, splits and feature files."""
