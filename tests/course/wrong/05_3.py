import numpy as np


def parts(w, a, s1, s2):
    pi = 1 / (1 + np.exp(-a))
    first = pi * np.exp(-(w**2) / (2 * s1**2)) / (s1 * np.sqrt(2 * np.pi))
    second = (1 - pi) * np.exp(-(w**2) / (2 * s2**2)) / (s2 * np.sqrt(2 * np.pi))
    return first, second


# --- beyond six of its standard deviations the narrow component is left out


def scale_mixture_prior(w, a, s1, s2):
    first, second = parts(w, a, s1, s2)
    first = np.where((s1 < s2) & (abs(w) > 6 * s1), 0.0, first)
    second = np.where((s2 < s1) & (abs(w) > 6 * s2), 0.0, second)
    density = first + second
    return -np.sum(np.log(density)), w * (first / s1**2 + second / s2**2) / density


# --- the responsibility is kept a millionth away from 0 and 1


def scale_mixture_prior(w, a, s1, s2):
    first, second = parts(w, a, s1, s2)
    wide = np.clip(first / (first + second), 1e-6, 1 - 1e-6)
    d_w = wide * w / s1**2 + (1 - wide) * w / s2**2
    return -np.sum(np.log(first + second)), d_w


# --- the share of the wide component is kept a millionth away from 0 and 1


def scale_mixture_prior(w, a, s1, s2):
    a = np.clip(a, -13.8, 13.8)
    first, second = parts(w, a, s1, s2)
    density = first + second
    return -np.sum(np.log(density)), w * (first / s1**2 + second / s2**2) / density


# --- pi is kept for each pair of scales, and a changes

kept = {}


def scale_mixture_prior(w, a, s1, s2):
    pi = kept.setdefault((s1, s2), 1 / (1 + np.exp(-a)))
    first = pi * np.exp(-(w**2) / (2 * s1**2)) / (s1 * np.sqrt(2 * np.pi))
    second = (1 - pi) * np.exp(-(w**2) / (2 * s2**2)) / (s2 * np.sqrt(2 * np.pi))
    density = first + second
    return -np.sum(np.log(density)), w * (first / s1**2 + second / s2**2) / density


# --- a floor under the density


def scale_mixture_prior(w, a, s1, s2):
    first, second = parts(w, a, s1, s2)
    density = first + second + 1e-12
    return -np.sum(np.log(density)), w * (first / s1**2 + second / s2**2) / density


# --- the likelier component alone


def scale_mixture_prior(w, a, s1, s2):
    first, second = parts(w, a, s1, s2)
    d_w = np.where(first > second, w / s1**2, w / s2**2)
    return -np.sum(np.log(np.maximum(first, second))), d_w


# --- one density for all weights


def scale_mixture_prior(w, a, s1, s2):
    first, second = parts(w, a, s1, s2)
    density = np.sum(first + second)
    return -np.log(density), w * (first / s1**2 + second / s2**2) / density


# --- all weights come from one component


def scale_mixture_prior(w, a, s1, s2):
    pi = 1 / (1 + np.exp(-a))
    root = np.sqrt(2 * np.pi)
    first = pi * np.prod(np.exp(-(w**2) / (2 * s1**2)) / (s1 * root))
    second = (1 - pi) * np.prod(np.exp(-(w**2) / (2 * s2**2)) / (s2 * root))
    density = first + second
    return -np.log(density), w * (first / s1**2 + second / s2**2) / density


# --- float32 inside


def scale_mixture_prior(w, a, s1, s2):
    w = w.astype(np.float32)
    first, second = parts(w, a, s1, s2)
    density = first + second
    return -np.sum(np.log(density)), w * (first / s1**2 + second / s2**2) / density


# --- right: logarithms of the components, which do not underflow


def scale_mixture_prior(w, a, s1, s2):
    first = -np.log(1 + np.exp(-a)) - w**2 / (2 * s1**2) - np.log(s1)
    second = -np.log(1 + np.exp(a)) - w**2 / (2 * s2**2) - np.log(s2)
    top = np.maximum(first, second)
    log_density = top + np.log(np.exp(first - top) + np.exp(second - top))
    wide = 1 / (1 + np.exp(second - first))
    value = np.sum(np.log(2 * np.pi) / 2 - log_density)
    return value, w * (wide * s1**-2 + (1 - wide) * s2**-2)


# --- right: logaddexp


def scale_mixture_prior(w, a, s1, s2):
    first = -np.logaddexp(0, -a) - w**2 / (2 * s1**2) - np.log(s1)
    second = -np.logaddexp(0, a) - w**2 / (2 * s2**2) - np.log(s2)
    log_density = np.logaddexp(first, second)
    d_w = w * (np.exp(first - log_density) / s1**2 + np.exp(second - log_density) / s2**2)
    return np.sum(np.log(2 * np.pi) / 2 - log_density), d_w
