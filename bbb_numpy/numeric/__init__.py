"""Numerical foundations, on NumPy alone.

`elementary`: stable, complex-safe functions. `layout`: named views of one flat vector. `buffers`:
arrays that are reused at every step. `validation`: checks of arguments. `standardisation`: columns
in standard units. `threads`: one thread for BLAS. `processes`: child processes. `files` and
`reading`: files that are written whole or not at all, and read safely. `storing`: states in such
files; `old_names`: names in files of earlier versions. `named`: tables of names. `deprecation`:
renamed public names.
"""
