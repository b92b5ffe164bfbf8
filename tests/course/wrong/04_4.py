import numpy as np

# --- probabilities are at least a millionth


def entropy_of_a_class(p):
    p = np.maximum(p, 1e-6)
    mean = p.mean(axis=0)
    total = -np.sum(mean * np.log(mean))
    aleatoric = -np.sum(p * np.log(p)) / len(p)
    return total, aleatoric, total - aleatoric


# --- probabilities below a thousandth count nothing


def entropy_of_a_class(p):
    def entropy(some):
        return -np.sum(np.where(some > 1e-3, some * np.log(some), 0.0), axis=-1)

    total, aleatoric = entropy(p.mean(axis=0)), entropy(p).mean()
    return total, aleatoric, total - aleatoric


# --- a small number is added to every probability


def entropy_of_a_class(p):
    mean = p.mean(axis=0)
    total = -np.sum(mean * np.log(mean + 1e-12))
    aleatoric = -np.sum(p * np.log(p + 1e-12)) / len(p)
    return total, aleatoric, total - aleatoric


# --- the mean over classes


def entropy_of_a_class(p):
    mean = p.mean(axis=0)
    total = -np.mean(mean * np.log(mean))
    aleatoric = -np.mean(p * np.log(p))
    return total, aleatoric, total - aleatoric


# --- a share of the largest entropy, log C


def entropy_of_a_class(p):
    mean = p.mean(axis=0)
    total = -np.sum(mean * np.log(mean)) / np.log(p.shape[1])
    aleatoric = -np.sum(p * np.log(p)) / len(p) / np.log(p.shape[1])
    return total, aleatoric, total - aleatoric


# --- the mean of the logarithms' softmax


def entropy_of_a_class(p):
    mean = np.exp(np.log(p).mean(axis=0))
    mean = mean / mean.sum()
    total = -np.sum(mean * np.log(mean))
    aleatoric = -np.sum(p * np.log(p)) / len(p)
    return total, aleatoric, total - aleatoric


# --- two classes, of which the first is looked at


def entropy_of_a_class(p):
    def entropy(one):
        return -one * np.log(one) - (1 - one) * np.log(1 - one)

    total, aleatoric = entropy(p[:, 0].mean()), entropy(p[:, 0]).mean()
    return total, aleatoric, total - aleatoric


# --- epistemic is the variance of the probabilities


def entropy_of_a_class(p):
    mean = p.mean(axis=0)
    total = -np.sum(mean * np.log(mean))
    aleatoric = -np.sum(p * np.log(p)) / len(p)
    return total, aleatoric, np.sum(p.var(axis=0))


# --- float32 inside


def entropy_of_a_class(p):
    p = p.astype(np.float32)
    mean = p.mean(axis=0)
    total = -np.sum(mean * np.log(mean))
    aleatoric = -np.sum(p * np.log(p)) / len(p)
    return total, aleatoric, total - aleatoric


# --- right: divided by their sum, as libraries do


def entropy_of_a_class(p):
    def entropy(some):
        some = some / some.sum(axis=-1, keepdims=True)
        return -np.sum(some * np.log(some), axis=-1)

    total, aleatoric = entropy(p.mean(axis=0)), entropy(p).mean()
    return total, aleatoric, total - aleatoric


# --- right: epistemic is the mean KL from the mean


def entropy_of_a_class(p):
    mean = p.mean(axis=0)
    epistemic = np.mean(np.sum(p * np.log(p / mean), axis=1))
    aleatoric = -np.mean(np.sum(p * np.log(p), axis=1))
    return aleatoric + epistemic, aleatoric, epistemic


# --- right: 0 log 0 is 0


def entropy_of_a_class(p):
    def entropy(some):
        return -np.sum(some * np.log(np.where(some > 0, some, 1.0)), axis=-1)

    total, aleatoric = entropy(p.mean(axis=0)), entropy(p).mean()
    return total, aleatoric, max(total - aleatoric, 0.0)
