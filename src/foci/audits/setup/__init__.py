"""Prepare an audit: load model and cohort, check them, split the slides, fit selectors."""
