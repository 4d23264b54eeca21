"""The HTML page that carries text and data."""
