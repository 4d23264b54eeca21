"""Hand an audit to other programs: QuPath, tables, figures for print."""
