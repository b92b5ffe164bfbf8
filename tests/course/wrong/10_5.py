import numpy as np

# --- a trajectory of almost no length never turns


def u_turn(left, right, r_left, r_right):
    span = right - left
    if span @ span < 0.01:
        return 1.0, 1.0
    return span @ r_left, span @ r_right


# --- cosines of the angles, not slopes


def u_turn(left, right, r_left, r_right):
    span = (right - left) / np.linalg.norm(right - left)
    return span @ r_left / np.linalg.norm(r_left), span @ r_right / np.linalg.norm(r_right)


# --- squeezed products, one for each weight, of which the first counts


def u_turn(left, right, r_left, r_right):
    span = right - left
    return (span * r_left)[0], (span * r_right)[0]


# --- signs alone


def u_turn(left, right, r_left, r_right):
    span = right - left
    return np.sign(span @ r_left), np.sign(span @ r_right)


# --- the mean over the weights


def u_turn(left, right, r_left, r_right):
    span = right - left
    return np.mean(span * r_left), np.mean(span * r_right)
