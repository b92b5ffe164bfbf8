"""Blundell et al.'s own experiments: MNIST and the mushroom bandit."""
