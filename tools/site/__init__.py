"""The documentation site, made from ``docs/``, from the code and from runs.

    python -m tools.site

``build`` copies ``docs/`` to ``build/pages`` and adds the pages that come from the code; Zensical
turns them into ``build/site``; ``links`` checks every link in it.
"""
