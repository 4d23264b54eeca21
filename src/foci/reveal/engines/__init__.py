"""Four exact ways to compute a curve: closed form, packed, generic and reference."""
