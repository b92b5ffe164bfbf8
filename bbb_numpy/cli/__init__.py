"""The command line: each subcommand beside its own parser.

`main`: from arguments to an exit code. `gradcheck`, `fit` (and predict), `evaluate`: the
subcommands. `options`: what their parsers share. `tables`, `problem`: the tables they read, and
what is to be learned from one. `outputs`: the files they write. `modelling`, `rivals`: the model,
and what it is compared with.
"""
