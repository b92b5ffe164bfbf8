"""The parts of a model, each with its density, its gradient and its draws, NumPy alone.

`network`: the MLP (K31-K42), on the fast `products` of its layers and its `activations`.
`posteriors`, `full_rank`, `low_rank`: q(w|theta). `priors`, `mixture`, `student_t`: P(w).
`likelihoods`, `discrete`, `student_t`: P(D|w). `hyperpriors`: densities of the scales that a
sampler draws.
"""
