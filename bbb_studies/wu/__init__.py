"""Wu's two systems: a quartic by MLE, MAP and VI, and a radio field over a plane."""
