import numpy as np

# --- the largest of all rows is taken out


def log_predictive_density(log_density):
    top = log_density.max()
    return top + np.log(np.mean(np.exp(log_density - top), axis=0))


# --- the first function's density is taken out


def log_predictive_density(log_density):
    first = log_density[0]
    return first + np.log(np.mean(np.exp(log_density - first), axis=0))


# --- the mean is taken out


def log_predictive_density(log_density):
    middle = log_density.mean(axis=0)
    return middle + np.log(np.mean(np.exp(log_density - middle), axis=0))


# --- the middle of the smallest and the largest is taken out


def log_predictive_density(log_density):
    middle = (log_density.max(axis=0) + log_density.min(axis=0)) / 2
    return middle + np.log(np.mean(np.exp(log_density - middle), axis=0))


# --- the largest is taken out only if all rows would be 0 or one infinite


def log_predictive_density(log_density):
    plain = np.log(np.mean(np.exp(log_density), axis=0))
    if np.isfinite(plain).any():
        return plain
    top = log_density.max(axis=0)
    return top + np.log(np.mean(np.exp(log_density - top), axis=0))


# --- long doubles, whose exponential is 0 later


def log_predictive_density(log_density):
    density = np.exp(log_density.astype(np.longdouble))
    return np.log(density.mean(axis=0)).astype(float)


# --- the largest is taken out and not added again where it is small


def log_predictive_density(log_density):
    top = np.maximum(log_density.max(axis=0), -1000.0)
    return top + np.log(np.mean(np.exp(log_density - top), axis=0))


# --- functions that are 15 below the best are left out


def log_predictive_density(log_density):
    top = log_density.max(axis=0)
    off = log_density - top
    return top + np.log(np.mean(np.where(off > -15, np.exp(off), 0.0), axis=0))


# --- divided by the number of rows


def log_predictive_density(log_density):
    top = log_density.max(axis=0)
    off = np.exp(log_density - top)
    return top + np.log(off.sum(axis=0) / log_density.shape[1])


# --- float32 inside


def log_predictive_density(log_density):
    log_density = log_density.astype(np.float32)
    top = log_density.max(axis=0)
    return top + np.log(np.mean(np.exp(log_density - top), axis=0))


# --- right: logaddexp of all functions


def log_predictive_density(log_density):
    return np.logaddexp.reduce(log_density, axis=0) - np.log(len(log_density))


# --- right: each row by itself, the largest sorted to the end


def log_predictive_density(log_density):
    rows = []
    for row in log_density.T:
        *rest, top = sorted(row)
        rows.append(top + np.log1p(sum(np.exp(one - top) for one in rest)))
    return np.array(rows) - np.log(len(log_density))
