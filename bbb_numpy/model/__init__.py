"""The parts put together: one joint density, and what is minimised; NumPy alone.

`joint`: network + prior + likelihood, and its gradient. `log_joint`: the same over weights and
scales, for samplers. `objectives`: from log densities to a loss. `kl_weights`: the share of the KL
term that a minibatch pays.
"""
