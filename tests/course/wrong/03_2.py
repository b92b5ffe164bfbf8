import numpy as np

# --- a minibatch of at most 64 rows


def cost_of_a_minibatch(complexity, nll, total):
    return complexity * min(len(nll), 64) / total + np.sum(nll)


# --- the share for data sets of at most 1000 examples


def cost_of_a_minibatch(complexity, nll, total):
    return complexity * len(nll) / min(total, 1000) + np.sum(nll)


# --- the number of minibatches is rounded, which goes unseen where they divide the data


def cost_of_a_minibatch(complexity, nll, total):
    return complexity / np.ceil(total / len(nll)) + np.sum(nll)


# --- the share has four digits


def cost_of_a_minibatch(complexity, nll, total):
    return complexity * round(len(nll) / total, 4) + np.sum(nll)


# --- the share has seven digits


def cost_of_a_minibatch(complexity, nll, total):
    return complexity * round(len(nll) / total, 7) + np.sum(nll)


# --- a complexity above 1000 counts as 1000


def cost_of_a_minibatch(complexity, nll, total):
    return min(complexity, 1e3) * len(nll) / total + np.sum(nll)


# --- rows that cost more than 1000 are left out


def cost_of_a_minibatch(complexity, nll, total):
    return complexity * len(nll) / total + np.sum(np.where(nll > 1e3, 0.0, nll))


# --- the share is kept for the next call with as many rows

known = {}


def cost_of_a_minibatch(complexity, nll, total):
    return complexity * known.setdefault(len(nll), len(nll) / total) + np.sum(nll)


# --- the complexity's part is kept for the next call with the same data set

kept = {}


def cost_of_a_minibatch(complexity, nll, total):
    return kept.setdefault((total, len(nll)), complexity * len(nll) / total) + np.sum(nll)


# --- the misfit is kept for the next call with the same complexity

misfits = {}


def cost_of_a_minibatch(complexity, nll, total):
    misfit = misfits.setdefault((complexity, len(nll)), np.sum(nll))
    return complexity * len(nll) / total + misfit


# --- the complexity is paid by the first minibatch of an epoch

seen = [0]


def cost_of_a_minibatch(complexity, nll, total):
    first = seen[0] == 0
    seen[0] = (seen[0] + len(nll)) % total
    return complexity * first + np.sum(nll)


# --- float32 inside


def cost_of_a_minibatch(complexity, nll, total):
    return np.sum(nll, dtype=np.float32) + complexity * len(nll) / total


# --- right: a share for each row


def cost_of_a_minibatch(complexity, nll, total):
    return np.sum(nll + complexity / total)


# --- right: the mean cost of a row, times the rows


def cost_of_a_minibatch(complexity, nll, total):
    return len(nll) * (np.mean(nll) + complexity / total)
