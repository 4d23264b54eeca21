"""The viewer's HTML page, script and style sheet."""
