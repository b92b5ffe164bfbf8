"""The command line: each subcommand beside its own parser.

`main`: from arguments to an exit code. `interrupts`: Ctrl-C. `fit` (and predict), `gradcheck`,
`reproduce` (and report), `uci`: the subcommands. `options`: what their parsers share. `csv_tables`:
the tables they read.
"""
