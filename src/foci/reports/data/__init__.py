"""Data that a report embeds for its figures, its table and its slides."""
