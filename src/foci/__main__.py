"""``python -m foci``."""

from foci.cli import main

main()
