"""What follows from the runs of a function.

`runs` computes it on exact numbers, of the `data` that it is proved for; `evidence` measures it at
theta, and `errors` finds which derivatives are wrong. `attempts` says how a claim is proved, of
which there are two: `gradients` and `values`.
"""
