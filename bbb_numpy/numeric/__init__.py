"""Numerical foundations, on NumPy alone.

`elementary`: stable, complex-safe functions. `layout`: named views of one flat vector. `buffers`:
memory that a step uses again. `validation`: checks of arguments. `standardisation`: columns in
standard units. `threads`: one thread for BLAS. `processes`: child processes. `files`, `reading`:
files written whole or not at all, and read safely. `storing`: states in such files, `old_names`:
the names that earlier ones hold. `named`: tables of names. `deprecation`: renamed public names.
"""
