"""Compare several audits side by side."""
