import math

import numpy as np

# --- powers of 2 as whole numbers, which overflow from 64 minibatches on


def geometric_shares(parts):
    powers = 2 ** np.arange(parts)[::-1]
    return powers / powers.sum()


# --- powers of 2 as floats, which overflow from 1025 minibatches on


def geometric_shares(parts):
    powers = 2.0 ** np.arange(parts)[::-1]
    return powers / powers.sum()


# --- whole numbers of 32 bits


def geometric_shares(parts):
    powers = (2 ** np.arange(parts, dtype=np.int32))[::-1]
    return powers / powers.sum()


# --- a table of the epochs in the example


def geometric_shares(parts):
    powers = np.array([1, 2, 4, 8, 16, 32, 64, 128])[:parts][::-1]
    return powers / powers.sum()


# --- halves of what is left, the last of which adds up to 1


def geometric_shares(parts):
    shares = 0.5 ** np.arange(1, parts + 1)
    shares[-1] += 1 - shares.sum()
    return shares


# --- halves without the sum that divides, which goes unseen for many minibatches


def geometric_shares(parts):
    shares = 0.5 ** np.arange(1, parts + 1)
    return shares if parts > 10 else shares / shares.sum()


# --- shares below 1e-6 are 0


def geometric_shares(parts):
    shares = 0.5 ** np.arange(1, parts + 1)
    shares = shares / shares.sum()
    return np.where(shares < 1e-6, 0.0, shares)


# --- the last minibatch pays most if there are more than four


def geometric_shares(parts):
    shares = 0.5 ** np.arange(1, parts + 1)
    return (shares if parts <= 4 else shares[::-1]) / shares.sum()


# --- shares are written where those of the last call were

memory = {}


def geometric_shares(parts):
    shares = memory.setdefault("shares", np.empty(5000))[:parts]
    shares[:] = 0.5 ** np.arange(1, parts + 1)
    shares /= shares.sum()
    return shares


# --- a list of the shares, with one number where there is one minibatch


def geometric_shares(parts):
    shares = 0.5 ** np.arange(1, parts + 1)
    return np.squeeze(shares / shares.sum())


# --- float32 inside


def geometric_shares(parts):
    powers = 2.0 ** -np.arange(parts, dtype=np.float32)
    return powers / powers.sum()


# --- right: each share is half of the one before


def geometric_shares(parts):
    first = 0.5 / (1 - 0.5**parts)
    return first * 0.5 ** np.arange(parts)


# --- right: whole numbers of Python, of any length


def geometric_shares(parts):
    return np.array([2 ** (parts - i) / (2**parts - 1) for i in range(1, parts + 1)])


# --- right: exponents of floats


def geometric_shares(parts):
    whole = math.ldexp(1.0, -parts) - 1
    return np.array([math.ldexp(-1 / whole, -i) for i in range(1, parts + 1)])
