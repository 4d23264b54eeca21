"""A local web server that shows an audit: its cohort, and reveal curves in step with the tissue."""

EXTRA = "foci-mil[viewer]"
"""What to install for the server."""
