"""The documentation site, made from ``docs/``, from the code and from runs.

    python -m tools.site

``pages`` copies ``docs/`` to ``build/pages`` and adds what comes from the code; ``gallery`` audits
a few maps and puts their reports there; Zensical turns all of it into ``build/site``; ``links``
checks every link. ``tutorial``, ``diagrams`` and ``pictures`` renew what is kept in ``docs/``.
"""
