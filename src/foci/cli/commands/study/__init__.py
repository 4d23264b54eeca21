"""``foci study``: the paper's whole matrix from one file."""

from __future__ import annotations

from foci.cli.commands.study import cell, new, plan, run, slurm, tables
from foci.cli.help_panels import FociTyper

app = FociTyper(
    help="Many audits from one file: cohorts x backbones x seeds, with tables and figures.",
    no_args_is_help=True,
)
app.command()(new.new)
app.command()(plan.plan)
app.command()(run.run)
app.command()(plan.status)
app.command()(tables.tables)
app.command()(slurm.slurm)
app.command()(cell.cell)
