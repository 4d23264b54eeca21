"""Before an audit computes anything: model, cohort, splits, selectors."""
