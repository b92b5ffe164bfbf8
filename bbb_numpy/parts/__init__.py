"""The parts of a model, each with its density, its gradient and its draws, NumPy alone.

`network`: the MLP (K31-K42), on the fast `products` of its layers. `posteriors`, `full_rank`:
q(w|theta). `priors`, `mixture`: P(w). `likelihoods`, `discrete`: P(D|w). `hyperpriors`: densities
of the scales that a sampler draws.
"""
