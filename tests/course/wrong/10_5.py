import numpy as np

# --- a trajectory of almost no length never turns


def u_turn(q_left, q_right, r_left, r_right):
    span = q_right - q_left
    if span @ span < 0.01:
        return 1.0, 1.0
    return span @ r_left, span @ r_right


# --- cosines of the angles, not slopes


def u_turn(q_left, q_right, r_left, r_right):
    span = (q_right - q_left) / np.linalg.norm(q_right - q_left)
    return span @ r_left / np.linalg.norm(r_left), span @ r_right / np.linalg.norm(r_right)


# --- squeezed products, one for each weight, of which the first counts


def u_turn(q_left, q_right, r_left, r_right):
    span = q_right - q_left
    return (span * r_left)[0], (span * r_right)[0]


# --- signs alone


def u_turn(q_left, q_right, r_left, r_right):
    span = q_right - q_left
    return np.sign(span @ r_left), np.sign(span @ r_right)


# --- the mean over the weights


def u_turn(q_left, q_right, r_left, r_right):
    span = q_right - q_left
    return np.mean(span * r_left), np.mean(span * r_right)
