"""Studies: many audits from one file, and every table and figure of the paper from their curves."""
