"""Alarms: what may make the numbers of an audit wrong; caveats: what leaves them undefined."""
