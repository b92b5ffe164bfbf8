import numpy as np


def of(low, high, y, new_low, new_high, percent, scores=None, rank=None):
    if scores is None:
        scores = np.maximum(low - y, y - high)
    if rank is None:
        rank = -(-percent * (len(y) + 1) // 100)
    bound = np.sort(scores)[rank - 1]
    return new_low - bound, new_high + bound


# --- numpy's quantile, which interpolates


def conformal_interval(low, high, y, new_low, new_high, percent):
    bound = np.quantile(np.maximum(low - y, y - high), percent / 100)
    return new_low - bound, new_high + bound


# --- the largest score whose share is below the coverage


def conformal_interval(low, high, y, new_low, new_high, percent):
    rank = max(1, -(-percent * (len(y) + 1) // 100) - 1)
    return of(low, high, y, new_low, new_high, percent, rank=rank)


# --- scores are not sorted


def conformal_interval(low, high, y, new_low, new_high, percent):
    scores = np.maximum(low - y, y - high)
    bound = scores[-(-percent * (len(y) + 1) // 100) - 1]
    return new_low - bound, new_high + bound


# --- the k-th largest score


def conformal_interval(low, high, y, new_low, new_high, percent):
    rank = len(y) + 1 - -(-percent * (len(y) + 1) // 100)
    return of(low, high, y, new_low, new_high, percent, rank=rank)


# --- the interval never shrinks


def conformal_interval(low, high, y, new_low, new_high, percent):
    bound = max(of(low, high, y, 0.0, 0.0, percent)[1], 0.0)
    return new_low - bound, new_high + bound


# --- an interval that shrinks by more than its width is turned round


def conformal_interval(low, high, y, new_low, new_high, percent):
    a, b = of(low, high, y, new_low, new_high, percent)
    return np.minimum(a, b), np.maximum(a, b)


# --- scores as shares of the width of each interval


def conformal_interval(low, high, y, new_low, new_high, percent):
    scores = np.maximum(low - y, y - high) / (high - low)
    bound = np.sort(scores)[-(-percent * (len(y) + 1) // 100) - 1]
    width = new_high - new_low
    return new_low - bound * width, new_high + bound * width


# --- one bound for each end


def conformal_interval(low, high, y, new_low, new_high, percent):
    rank = -(-percent * (len(y) + 1) // 100) - 1
    return new_low - np.sort(low - y)[rank], new_high + np.sort(y - high)[rank]


# --- the bound is kept for the next call with as many rows

kept = {}


def conformal_interval(low, high, y, new_low, new_high, percent):
    bound = kept.setdefault((len(y), percent), of(low, high, y, 0.0, 0.0, percent)[1])
    return new_low - bound, new_high + bound


# --- the held-out scores are sorted in place, in the array of the caller


def conformal_interval(low, high, y, new_low, new_high, percent):
    y.sort()
    return of(low, high, y, new_low, new_high, percent)


# --- float32 inside


def conformal_interval(low, high, y, new_low, new_high, percent):
    scores = np.maximum(low - y, y - high).astype(np.float32)
    return of(low, high, y, new_low, new_high, percent, scores=scores)


# --- right: the rank in floats


def conformal_interval(low, high, y, new_low, new_high, percent):
    rank = int(np.ceil(percent * (len(y) + 1) / 100))
    return of(low, high, y, new_low, new_high, percent, rank=rank)


# --- right: np.partition


def conformal_interval(low, high, y, new_low, new_high, percent):
    rank = -(-percent * (len(y) + 1) // 100)
    bound = np.partition(np.maximum(low - y, y - high), rank - 1)[rank - 1]
    return new_low - bound, new_high + bound


# --- right: numpy's quantile that does not interpolate, of the scores and an infinite one


def conformal_interval(low, high, y, new_low, new_high, percent):
    scores = np.append(np.maximum(low - y, y - high), np.inf)
    bound = np.quantile(scores, percent / 100, method="inverted_cdf")
    return new_low - bound, new_high + bound
