import math

import numpy as np

# --- products of whole numbers, which overflow from 21! on


def occams_razor(heads, tails):
    def factorial(n):
        return np.prod(np.arange(1, n + 1))

    ratio = factorial(heads) * factorial(tails) / factorial(heads + tails + 1)
    return np.log(ratio) + (heads + tails) * np.log(2)


# --- a table of the first factorials

FACTORIALS = [1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800]


def occams_razor(heads, tails):
    top = len(FACTORIALS) - 1
    log = [np.log(FACTORIALS[min(n, top)]) for n in (heads, tails, heads + tails + 1)]
    return log[0] + log[1] - log[2] + (heads + tails) * np.log(2)


# --- Stirling's series, exact enough for small numbers only if its terms are


def occams_razor(heads, tails):
    def log_factorial(n):
        return (
            n * np.log(n) - n + np.log(2 * np.pi * n) / 2 + 1 / (12 * n)
            if n > 9
            else (math.log(math.factorial(n)))
        )

    below = log_factorial(heads + tails + 1)
    return log_factorial(heads) + log_factorial(tails) - below + (heads + tails) * np.log(2)


# --- the integral as a sum over a thousand places


def occams_razor(heads, tails):
    r = (np.arange(1000) + 0.5) / 1000
    evidence = np.mean(r**heads * (1 - r) ** tails)
    return np.log(evidence) + (heads + tails) * np.log(2)


# --- evidences below 1e-12 are taken for it


def occams_razor(heads, tails):
    evidence = 1 / (math.comb(heads + tails, tails) * (heads + tails + 1))
    return np.log(max(evidence, 1e-12)) - np.log(max(0.5 ** (heads + tails), 1e-12))


# --- whole numbers of Python beyond 64 bits, of which NumPy has no logarithm


def occams_razor(heads, tails):
    ways = math.comb(heads + tails, tails) * (heads + tails + 1)
    return (heads + tails) * np.log(2) - np.log(ways)


# --- right: binomial coefficients are exact whole numbers of Python


def occams_razor(heads, tails):
    ways = math.comb(heads + tails, tails) * (heads + tails + 1)
    return (heads + tails) * np.log(2) - math.log(ways)
