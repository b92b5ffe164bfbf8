"""Subcommands of ``bbb-numpy``: `reproduce` (and report), `uci`, `compare`."""
