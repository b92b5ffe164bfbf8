"""What the mathematics stands on, NumPy alone.

`elementary`: stable, complex-safe functions. `layout`: named views of one flat vector. `buffers`:
arrays that a step leaves for the next, and who owns them. `validation`: checks of arguments.
`standardisation`: columns in standard units. `threads`: BLAS on one. `files`: files written whole
or not at all. `storing`: states in such files. `deprecation`: old names of what was renamed.
"""
