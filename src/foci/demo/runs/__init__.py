"""What the demo runs on its cohorts: three audits, or a whole study in miniature."""
