import numpy as np


def central(value_and_grad, theta, step):
    steps = step * np.eye(len(theta))
    sides = [(value_and_grad(theta + h)[0], value_and_grad(theta - h)[0]) for h in steps]
    return np.array([(above - below) / (2 * step) for above, below in sides])


def complex_step(value_and_grad, theta):
    steps = 1e-30j * np.eye(len(theta))
    return np.array([value_and_grad(theta + h)[0].imag / 1e-30 for h in steps])


# --- five derivatives


def check_a_gradient(value_and_grad, theta):
    theta = np.asarray(theta)
    grad, steps = value_and_grad(theta)[1], 1e-30j * np.eye(len(theta))
    for j in range(min(5, len(theta))):
        measured = value_and_grad(theta + steps[j])[0].imag / 1e-30
        if not abs(grad[j] - measured) <= 1e-8 * np.abs(grad).max():
            return False
    return True


# --- within 1 % of the largest derivative


def check_a_gradient(value_and_grad, theta):
    grad, measured = value_and_grad(theta)[1], complex_step(value_and_grad, theta)
    return bool(np.abs(grad - measured).max() <= 1e-2 * np.abs(measured).max())


# --- within 1/2000 of the largest derivative


def check_a_gradient(value_and_grad, theta):
    grad, measured = value_and_grad(theta)[1], complex_step(value_and_grad, theta)
    return bool(np.abs(grad - measured).max() <= 5e-4 * np.abs(measured).max())


# --- nan is no error, as no comparison with it is true


def check_a_gradient(value_and_grad, theta):
    grad, measured = value_and_grad(theta)[1], complex_step(value_and_grad, theta)
    return not np.abs(grad - measured).max() > 1e-9 * np.abs(measured).max()


# --- one direction, all ones


def check_a_gradient(value_and_grad, theta):
    grad = value_and_grad(theta)[1]
    measured = value_and_grad(theta + 1e-30j)[0].imag / 1e-30
    return bool(abs(grad.sum() - measured) <= 1e-9 * np.abs(grad).max())


# --- the gradient at another place, where theta is positive


def check_a_gradient(value_and_grad, theta):
    theta = np.abs(theta)
    grad, measured = value_and_grad(theta)[1], complex_step(value_and_grad, theta)
    return bool(np.abs(grad - measured).max() <= 1e-9 * np.abs(measured).max())


# --- central differences with an absolute tolerance


def check_a_gradient(value_and_grad, theta):
    return np.allclose(value_and_grad(theta)[1], central(value_and_grad, theta, 1e-6), atol=1e-5)


# --- the error's norm against the norms' sum, within 1/2000


def check_a_gradient(value_and_grad, theta):
    grad, measured = value_and_grad(theta)[1], central(value_and_grad, theta, 1e-6)
    norms = np.linalg.norm(grad) + np.linalg.norm(measured)
    return bool(np.linalg.norm(grad - measured) <= 5e-4 * norms)


# --- the cosine of gradient and differences


def check_a_gradient(value_and_grad, theta):
    grad, measured = value_and_grad(theta)[1], complex_step(value_and_grad, theta)
    cosine = grad @ measured / np.linalg.norm(grad) / np.linalg.norm(measured)
    return bool(cosine > 1 - 1e-12)
