"""Conclude from the runs of a function whether a claim about it is proved or refuted.

`runs` runs the function on exact numbers, `data` holds the conditions on its arguments, `evidence`
evaluates it at theta in decimals or floats, and `errors` finds the derivatives that are wrong.
`attempts` proves a claim, of which there are two: `gradients` claims that a gradient is right,
`values` that two functions have the same values.
"""
