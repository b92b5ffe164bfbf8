import numpy as np

# --- gradients are clipped to +-100


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    return mu - eta * np.clip(d_mu, -100, 100), rho - eta * np.clip(d_rho, -100, 100)


# --- gradients longer than 1000 are shortened


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    length = np.sqrt(np.sum(d_mu**2) + np.sum(d_rho**2))
    share = min(1.0, 1e3 / (length + 1e-300))
    return mu - eta * share * d_mu, rho - eta * share * d_rho


# --- the learning rate is at most 1000


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    eta = min(eta, 1e3)
    return mu - eta * d_mu, rho - eta * d_rho


# --- a step below 1e-10 is no step


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    def step(gradient):
        return np.where(np.abs(eta * gradient) < 1e-10, 0.0, eta * gradient)

    return mu - step(d_mu), rho - step(d_rho)


# --- results are written where those of the last call were

memory = {}


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    new_mu, new_rho = memory.setdefault(mu.shape, np.empty((2, len(mu))))
    new_mu[:], new_rho[:] = mu - eta * d_mu, rho - eta * d_rho
    return new_mu, new_rho


# --- the step is kept for the next call with the same gradient

known = {}


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    key = d_mu.tobytes() + d_rho.tobytes()
    step, turn = known.setdefault(key, (eta * d_mu, eta * d_rho))
    return mu - step, rho - turn


# --- the old ones are moved


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    mu -= eta * d_mu
    rho -= eta * d_rho
    return mu, rho


# --- the learning rate falls from call to call

calls = [0]


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    eta = eta / (1 + 1e-6 * calls[0])
    calls[0] += 1
    return mu - eta * d_mu, rho - eta * d_rho


# --- a little momentum

velocity = {}


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    old = velocity.get(mu.shape, 0.0)
    velocity[mu.shape] = 0.01 * old + np.array([d_mu, d_rho])
    step = eta * velocity[mu.shape]
    return mu - step[0], rho - step[1]


# --- float32 inside


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    return (mu - eta * d_mu).astype(np.float32), (rho - eta * d_rho).astype(np.float32)


# --- right: both at once


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    return tuple(np.stack([mu, rho]) + np.stack([d_mu, d_rho]) * -eta)


# --- right: the minimum of the line that touches and a parabola


def step_of_descent(mu, rho, d_mu, d_rho, eta):
    return (mu / eta - d_mu) * eta, (rho / eta - d_rho) * eta
