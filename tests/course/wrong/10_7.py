# --- the steps' own heat to first order


def too_wide(lam, v, temperature, h, c):
    heated = temperature + h**2 / 4 * v * (1 + c) / (1 - c)
    return heated / lam * (1 + h**2 / 4 * lam)


# --- small steps are taken for none


def too_wide(lam, v, temperature, h, c):
    if h < 0.05:
        return temperature / lam
    return (temperature + h**2 / 4 * v * (1 + c) / (1 - c)) / (lam * (1 - h**2 / 4 * lam))


# --- the gradient's noise once a step, not in both halves


def too_wide(lam, v, temperature, h, c):
    heated = temperature + h**2 / 2 * v * (1 + c**2) / (1 - c**2)
    return heated / (lam * (1 - h**2 / 4 * lam))


# --- a momentum kept to more than 99 % is taken for 99 %


def too_wide(lam, v, temperature, h, c):
    if 0.99 < c < 1:
        c = 0.99
    return (temperature + h**2 / 4 * v * (1 + c) / (1 - c)) / (lam * (1 - h**2 / 4 * lam))


# --- curvatures above 8 are taken for 8


def too_wide(lam, v, temperature, h, c):
    lam = min(lam, 8.0)
    return (temperature + h**2 / 4 * v * (1 + c) / (1 - c)) / (lam * (1 - h**2 / 4 * lam))
