"""Several audits side by side."""
