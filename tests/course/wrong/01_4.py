import numpy as np

# --- counts of the sides that occur, which may be one


def conjugate_coin(alpha, beta, flips):
    counts = np.bincount(flips)
    return alpha + counts[1], beta + counts[0]


# --- counts of what is unique, of which there may be one


def conjugate_coin(alpha, beta, flips):
    _, counts = np.unique(flips, return_counts=True)
    return alpha + counts[-1], beta + counts[0]


# --- the last count is that of heads, even if none fell


def conjugate_coin(alpha, beta, flips):
    counts = np.bincount(flips)
    heads = counts[-1]
    return alpha + heads, beta + len(flips) - heads


# --- a share of heads, of no flips too


def conjugate_coin(alpha, beta, flips):
    share = np.mean(flips)
    return alpha + share * len(flips), beta + (1 - share) * len(flips)


# --- heads are counted in one byte


def conjugate_coin(alpha, beta, flips):
    heads = np.sum(flips, dtype=np.int8)
    return alpha + heads, beta + len(flips) - heads


# --- the first hundred flips


def conjugate_coin(alpha, beta, flips):
    flips = flips[:100]
    return alpha + np.sum(flips), beta + np.sum(1 - flips)


# --- a prior of more than a million flips is left as it is


def conjugate_coin(alpha, beta, flips):
    if alpha + beta > 1e6:
        return alpha, beta
    return alpha + np.sum(flips), beta + np.sum(1 - flips)


# --- heads are kept for the next call with as many flips and the same first one

known = {}


def conjugate_coin(alpha, beta, flips):
    heads = known.setdefault((len(flips), *flips[:1]), np.sum(flips))
    return alpha + heads, beta + len(flips) - heads


# --- the prior is updated where it is kept

belief = np.zeros(2)


def conjugate_coin(alpha, beta, flips):
    belief[:] = np.maximum(belief, [alpha, beta])
    belief[:] += np.sum(flips), np.sum(1 - flips)
    return belief[0], belief[1]


# --- the parameters are whole numbers


def conjugate_coin(alpha, beta, flips):
    return int(alpha) + np.sum(flips), int(beta) + np.sum(1 - flips)


# --- right: counts of both sides, even of one that did not fall


def conjugate_coin(alpha, beta, flips):
    tails, heads = np.bincount(flips, minlength=2)
    return alpha + heads, beta + tails


# --- right: flip by flip


def conjugate_coin(alpha, beta, flips):
    for flip in flips:
        if flip == 1:
            alpha = alpha + 1
        else:
            beta = beta + 1
    return alpha, beta
