import numpy as np

# --- the slope is taken to be that of the grader's example


def leapfrog(q, r, step, slope):
    r = r - step / 2 * (q**3 + q)
    q = q + step * r
    return q, r - step / 2 * (q**3 + q)


# --- the slope of each weight by itself


def leapfrog(q, r, step, slope):
    def each(q):
        return np.concatenate([slope(q[i : i + 1]) for i in range(len(q))])

    r = r + step / 2 * each(q)
    q = q + step * r
    return q, r + step / 2 * each(q)


# --- the slope is taken to be odd


def leapfrog(q, r, step, slope):
    r = r - step / 2 * slope(-q)
    q = q + step * r
    return q, r - step / 2 * slope(-q)


# --- slopes are clipped to +-100


def leapfrog(q, r, step, slope):
    r = r + step / 2 * np.clip(slope(q), -100, 100)
    q = q + step * r
    return q, r + step / 2 * np.clip(slope(q), -100, 100)


# --- Euler's method, the momentum first


def leapfrog(q, r, step, slope):
    r = r + step * slope(q)
    return q + step * r, r


# --- the slope at the new place is kept for the next call's first half

kept = {}


def leapfrog(q, r, step, slope):
    first = kept.pop("slope", None)
    if first is None or first.shape != q.shape:
        first = slope(q)
    r = r + step / 2 * first
    q = q + step * r
    kept["slope"] = slope(q)
    return q, r + step / 2 * kept["slope"]


# --- places and momenta are moved in place


def leapfrog(q, r, step, slope):
    r += step / 2 * slope(q)
    q += step * r
    r += step / 2 * slope(q)
    return q, r


# --- right: in the form of Verlet's velocities


def leapfrog(q, r, step, slope):
    first = slope(q)
    new_q = q + step * r + step**2 / 2 * first
    return new_q, r + step / 2 * (first + slope(new_q))
