"""The command line ``bbb-numpy``: each subcommand stands beside its own parser.

- `main` turns arguments into an exit code.
- `gradcheck`, `fit` (with predict) and `evaluate` are the subcommands.
- `options` holds what their parsers share, `modelling` the options of the model.
- `tables` reads files; `problem` says what is to be learned from one.
- `baselines` are the models with which `evaluate` compares.
- `outputs` checks the files that are written; `streams` what is printed.
"""
