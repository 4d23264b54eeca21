"""Render self-contained HTML pages from templates, data and the bundled script."""
