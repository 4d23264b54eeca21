"""A local web server that shows an audit: its cohort, and reveal curves in step with the tissue."""
