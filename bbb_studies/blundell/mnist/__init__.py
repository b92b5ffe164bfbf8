"""MNIST by SGD, MAP and Bayes by Backprop, and pruning."""
