import numpy as np


def evidence(alpha, beta, log_alpha, log_beta, d, squares, misfit, rows):
    value = rows * log_beta - beta * misfit + len(d) * log_alpha - alpha * squares
    return (value - np.sum(np.log(beta * d + alpha))) / 2


# --- directions with a curvature below 0.05 are not counted


def evidence_and_its_slopes(log_alpha, log_beta, d, squares, misfit, rows):
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    value = evidence(alpha, beta, log_alpha, log_beta, d, squares, misfit, rows)
    gamma = np.sum(np.where(d > 0.05, beta * d / (beta * d + alpha), 0.0))
    return value, (gamma - alpha * squares) / 2, (rows - beta * misfit - gamma) / 2


# --- the logarithms of the scales are clipped to +-4


def evidence_and_its_slopes(log_alpha, log_beta, d, squares, misfit, rows):
    log_alpha, log_beta = np.clip([log_alpha, log_beta], -4, 4)
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    value = evidence(alpha, beta, log_alpha, log_beta, d, squares, misfit, rows)
    gamma = np.sum(beta * d / (beta * d + alpha))
    return value, (gamma - alpha * squares) / 2, (rows - beta * misfit - gamma) / 2


# --- gamma cannot be larger than the rows


def evidence_and_its_slopes(log_alpha, log_beta, d, squares, misfit, rows):
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    value = evidence(alpha, beta, log_alpha, log_beta, d, squares, misfit, rows)
    gamma = min(np.sum(beta * d / (beta * d + alpha)), rows)
    return value, (gamma - alpha * squares) / 2, (rows - beta * misfit - gamma) / 2


# --- the value is right, its slopes are those of twice the value


def evidence_and_its_slopes(log_alpha, log_beta, d, squares, misfit, rows):
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    value = evidence(alpha, beta, log_alpha, log_beta, d, squares, misfit, rows)
    gamma = np.sum(beta * d / (beta * d + alpha))
    return value, gamma - alpha * squares, rows - beta * misfit - gamma


# --- the slope for log beta is that of MacKay's update, N - gamma where the misfit is fitted


def evidence_and_its_slopes(log_alpha, log_beta, d, squares, misfit, rows):
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    value = evidence(alpha, beta, log_alpha, log_beta, d, squares, misfit, rows)
    gamma = np.sum(beta * d / (beta * d + alpha))
    return value, (gamma - alpha * squares) / 2, ((rows - gamma) / misfit - beta) / 2
