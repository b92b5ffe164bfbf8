import numpy as np

# --- accepted at least once in a thousand, so that the chain never stands still


def acceptance_probability(density, new_density, forward, backward):
    return float(np.clip(new_density * backward / (density * forward), 1e-3, 1.0))


# --- accepted slightly too often


def acceptance_probability(density, new_density, forward, backward):
    return min(1.0, 1.01 * new_density * backward / (density * forward))


# --- the ratio only if the proposal is far from symmetric


def acceptance_probability(density, new_density, forward, backward):
    ratio = new_density / density
    if abs(np.log(backward / forward)) > 0.05:
        ratio = ratio * backward / forward
    return min(1.0, ratio)


# --- a move to a better place is always accepted


def acceptance_probability(density, new_density, forward, backward):
    if new_density >= density:
        return 1.0
    return min(1.0, new_density * backward / (density * forward))


# --- ratios above 100 are taken for errors


def acceptance_probability(density, new_density, forward, backward):
    ratio = new_density * backward / (density * forward)
    return 0.0 if ratio > 100 else min(1.0, ratio)


# --- right: by logarithms


def acceptance_probability(density, new_density, forward, backward):
    log_ratio = np.log(new_density) + np.log(backward) - np.log(density) - np.log(forward)
    return np.exp(min(0.0, log_ratio))
