"""The command line ``bbb-numpy``: each subcommand stands beside its own parser.

- `main` turns arguments into an exit code.
- `gradcheck`, `fit` (with predict) and `evaluate` are the subcommands.
- `options` has helpers of their parsers, `modelling` the options of the model.
- `tables` reads files; `problem` finds inputs, target and task in a table.
- `held_out` splits rows, and measures what `fit` prints; `pictures` draws it.
- `baselines` are the models with which `evaluate` compares.
- `outputs` checks that output files can be written; `streams` escapes control characters.
"""
