import numpy as np

# --- accepted at least once in a thousand, so that the chain never stands still


def acceptance_probability(here, there, forth, back):
    return float(np.clip(there * back / (here * forth), 1e-3, 1.0))


# --- accepted slightly too often


def acceptance_probability(here, there, forth, back):
    return min(1.0, 1.01 * there * back / (here * forth))


# --- the ratio only if the proposal is far from symmetric


def acceptance_probability(here, there, forth, back):
    ratio = there / here
    if abs(np.log(back / forth)) > 0.05:
        ratio = ratio * back / forth
    return min(1.0, ratio)


# --- a move to a better place is always accepted


def acceptance_probability(here, there, forth, back):
    if there >= here:
        return 1.0
    return min(1.0, there * back / (here * forth))


# --- ratios above 100 are taken for errors


def acceptance_probability(here, there, forth, back):
    ratio = there * back / (here * forth)
    return 0.0 if ratio > 100 else min(1.0, ratio)


# --- right: by logarithms


def acceptance_probability(here, there, forth, back):
    log_ratio = np.log(there) + np.log(back) - np.log(here) - np.log(forth)
    return np.exp(min(0.0, log_ratio))
