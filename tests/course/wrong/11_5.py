import numpy as np


def features(number, balls, degree=4):
    u = (np.asarray(number, float) - balls / 2) / (balls / 2)
    return np.stack([u**k for k in range(degree + 1)], axis=1)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def fitted(x, labels, everywhere, width=1.645):
    prior = np.eye(x.shape[1]) / 10.0**2
    w = np.zeros(x.shape[1])
    for _ in range(50):
        p = sigmoid(x @ w)
        hessian = x.T @ (x * (p * (1 - p))[:, None]) + prior
        w = w - 0.5 * np.linalg.solve(hessian, x.T @ (p - labels) + prior @ w)
    logit = everywhere @ w
    sd = np.sqrt(np.sum(everywhere * np.linalg.solve(hessian, everywhere.T).T, axis=1))
    return sigmoid(logit), sigmoid(logit - width * sd), sigmoid(logit + width * sd)


# --- all histories that it has ever seen are kept

seen = [[], []]


def powerball(numbers, labels, balls):
    seen[0].append(numbers)
    seen[1].append(labels)
    x = features(np.concatenate(seen[0]), balls)
    return fitted(x, np.concatenate(seen[1]), features(np.arange(1, balls + 1), balls))


# --- the first history is kept as a prior that counts twice

first = []


def powerball(numbers, labels, balls):
    if not first:
        first.append((np.tile(numbers, 2), np.tile(labels, 2)))
    numbers = np.concatenate([numbers, first[0][0]])
    labels = np.concatenate([labels, first[0][1]])
    return fitted(features(numbers, balls), labels, features(np.arange(1, balls + 1), balls))


# --- numbers are counted from 0


def powerball(numbers, labels, balls):
    return fitted(features(numbers, balls), labels, features(np.arange(balls), balls))


# --- labels the wrong way round


def powerball(numbers, labels, balls):
    x, everywhere = features(numbers, balls), features(np.arange(1, balls + 1), balls)
    return fitted(x, 1 - labels, everywhere)


# --- a straight line for the logit


def powerball(numbers, labels, balls):
    x, everywhere = features(numbers, balls, 1), features(np.arange(1, balls + 1), balls, 1)
    return fitted(x, labels, everywhere)


# --- one standard deviation in place of 1.645


def powerball(numbers, labels, balls):
    x, everywhere = features(numbers, balls), features(np.arange(1, balls + 1), balls)
    return fitted(x, labels, everywhere, 1.0)


# --- each ball of a draw is counted twice


def powerball(numbers, labels, balls):
    x, everywhere = features(np.tile(numbers, 2), balls), features(np.arange(1, balls + 1), balls)
    return fitted(x, np.tile(labels, 2), everywhere)


# --- right: float32 is enough for three digits


def powerball(numbers, labels, balls):
    x, everywhere = features(numbers, balls), features(np.arange(1, balls + 1), balls)
    found = fitted(x.astype(np.float32), labels.astype(np.float32), everywhere.astype(np.float32))
    return tuple(one.astype(np.float32) for one in found)
