"""M1 to M19: the full-rank q, the leapfrog, maps and conjugate priors, by algebra.

C is 2 x 2 and lower triangular, with the diagonal that softplus makes; T maps two or three numbers.
"""

import pytest
import sympy
from algebra import (
    HALF,
    LOG_2PI,
    equal,
    expectation,
    gaussian,
    log_gaussian,
    off_by,
    positives,
    reals,
    sigmoid,
    softplus,
)
from sympy import Integer, Matrix, Rational, diff, exp, eye, gamma, log, zeros

# M1 to M4: two weights
MU, RHO, EPS, W, D_W = reals("mu:2"), reals("rho:2"), reals("e:2"), reals("w:2"), reals("d:2")
LOWER, SHARE = reals("l10"), positives("share")
DIAGONAL = positives("l00 l11")
C = Matrix([[DIAGONAL[0], 0], [LOWER, DIAGONAL[1]]])
AT = {DIAGONAL[j]: softplus(RHO[j]) for j in range(2)}
NOISE, MEAN = Matrix(EPS), Matrix(MU)
LOG_Q = -log(C.det()) - HALF * sum(each**2 for each in EPS) - LOG_2PI  # M1 with P = 2
MOVED = list(MEAN + C * NOISE)


def at_theta(line):
    return sympy.sympify(line).subs(AT)


@pytest.mark.equation("M1")
def test_one_gaussian_with_all_correlations():
    moved = Matrix(MOVED)
    equal(MOVED, [MU[0] + C[0, 0] * EPS[0], MU[1] + C[1, 0] * EPS[0] + C[1, 1] * EPS[1]])
    equal([expectation(each, *EPS) for each in moved], MU)
    spread = (moved - MEAN) * (moved - MEAN).T
    equal([expectation(each, *EPS) for each in spread], C * C.T)
    # the density by the change of variables, and as that of N(mu, C C^T) directly
    standardised = C.inv() * (Matrix(W) - MEAN)
    equal(C.det(), DIAGONAL[0] * DIAGONAL[1])
    by_change = sum(log_gaussian(each, 0, 1) for each in standardised) - log(C.det())
    gap, covariance = Matrix(W) - MEAN, C * C.T
    direct = (-LOG_2PI - HALF * log(DIAGONAL[0] ** 2 * DIAGONAL[1] ** 2)
              - HALF * (gap.T * covariance.inv() * gap)[0])  # fmt: skip
    equal(covariance.det(), DIAGONAL[0] ** 2 * DIAGONAL[1] ** 2)
    equal(by_change, direct)
    equal(by_change.subs(dict(zip(W, MOVED, strict=True))), LOG_Q)
    # "evaluates to one"
    jacobian = Matrix(2, 2, lambda i, j: diff(standardised[i], W[j]))
    off_by(1, jacobian.det(), 1 - 1 / (DIAGONAL[0] * DIAGONAL[1]))


# A cost of the weights whose slope at w is d, and -log q beside it with the share of M2 and M3
COST = SHARE * LOG_Q + sum(d * each for d, each in zip(D_W, MOVED, strict=True))


@pytest.mark.equation("M2")
def test_the_gradient_for_mu_is_the_slope_of_the_weights():
    assert Matrix(2, 2, lambda i, j: diff(MOVED[i], MU[j])) == eye(2)
    entropy = -expectation(LOG_Q, *EPS)
    equal([diff(entropy, each) for each in MU], [0, 0])
    equal([diff(COST, each) for each in MU], D_W)


@pytest.mark.equation("M3")
def test_the_gradient_for_l_is_a_lower_triangle():
    outer = Matrix(2, 2, lambda i, j: D_W[i] * EPS[j])
    assert diff(MOVED[0], DIAGONAL[0]) == EPS[0]
    assert diff(MOVED[1], LOWER) == EPS[0]
    assert diff(MOVED[1], DIAGONAL[1]) == EPS[1]
    tril = Matrix(2, 2, lambda i, j: outer[i, j] if j <= i else 0)
    boxed = tril - SHARE * sympy.diag(1 / DIAGONAL[0], 1 / DIAGONAL[1])
    found = [diff(COST, DIAGONAL[0]), diff(COST, LOWER), diff(COST, DIAGONAL[1])]
    equal(found, [boxed[0, 0], boxed[1, 0], boxed[1, 1]])
    # printed, in our signs: the whole outer product, minus the transposed inverse
    printed = outer - SHARE * C.inv().T
    above = D_W[0] * EPS[1] + SHARE * LOWER / (DIAGONAL[0] * DIAGONAL[1])
    off_by(printed, boxed, Matrix([[0, above], [0, 0]]))
    # C^-T is the gradient of log |det| over all matrices
    full = Matrix(2, 2, positives("a:2:2"))
    slopes = Matrix(2, 2, lambda i, j: diff(log(full.det()), full[i, j]))
    equal(slopes, full.inv().T)
    # the diagonal through softplus is K30
    chain = [at_theta(boxed[k, k]) * sigmoid(RHO[k]) for k in range(2)]
    equal([diff(at_theta(COST), each) for each in RHO], chain)


@pytest.mark.equation("M3")
def test_the_direct_partials_of_the_full_rank_density():
    fixed = C.inv() * (Matrix(W) - MEAN)
    log_q = -log(DIAGONAL[0]) - log(DIAGONAL[1]) - HALF * sum(e**2 for e in fixed) - LOG_2PI
    moved = dict(zip(W, MOVED, strict=True))
    u = C.inv().T * NOISE
    partial = Matrix(2, 2, lambda i, j: u[i] * EPS[j] if j <= i else 0)
    partial -= sympy.diag(1 / DIAGONAL[0], 1 / DIAGONAL[1])
    equal([diff(log_q, each).subs(moved) for each in (DIAGONAL[0], LOWER, DIAGONAL[1])],
          [partial[0, 0], partial[1, 0], partial[1, 1]])  # fmt: skip
    equal([diff(log_q, each).subs(moved) for each in MU], u)
    equal([diff(log_q, each).subs(moved) for each in W], -u)
    # with C diagonal: those of W4 and W5
    equal(u.subs(LOWER, 0), [EPS[k] / DIAGONAL[k] for k in range(2)])


@pytest.mark.equation("M4")
def test_the_entropy():
    entropy = -expectation(LOG_Q, *EPS)
    right = log(DIAGONAL[0]) + log(DIAGONAL[1]) + (1 + LOG_2PI)  # P/2 = 1
    equal(entropy, right)
    assert not right.has(*MU, LOWER)
    off_by(expectation(LOG_Q, *EPS), right, -2 * right)  # printed: E log q is "entropy"


# M5 to M9


@pytest.mark.equation("M5")
def test_detailed_balance_gives_stationarity_and_no_more():
    p = positives("p:3")
    for smaller, larger in ((0, 1), (1, 2)):  # pi(x) q(x'|x) alpha = min, in both cases
        flow, back = p[smaller], p[smaller] + p[larger]  # flow < back
        alpha, returned = 1, flow / back
        equal(flow * alpha, back * returned)
    # balance summed over x: three points, any balanced kernel
    flows = positives("f01 f02 f12")
    f01, f02, f12 = flows
    kernel = Matrix([
        [1 - (f01 + f02) / p[0], f01 / p[0], f02 / p[0]],
        [f01 / p[1], 1 - (f01 + f12) / p[1], f12 / p[1]],
        [f02 / p[2], f12 / p[2], 1 - (f02 + f12) / p[2]],
    ])  # fmt: skip
    row = Matrix([p])
    equal(row * kernel, row)
    # the proposal itself is not balanced: here by the difference of its flows
    q01, q10 = positives("q01 q10")
    off_by(p[0] * q01, p[1] * q10, p[0] * q01 - p[1] * q10)
    # balanced and not ergodic: reducible, periodic
    halves = sympy.diag(Matrix([[HALF, HALF], [HALF, HALF]]), Matrix([[HALF, HALF], [HALF, HALF]]))
    assert halves**2 == halves
    assert halves == halves.T  # balanced for the uniform distribution
    for stationary in (Matrix([[HALF, HALF, 0, 0]]), Matrix([[0, 0, HALF, HALF]])):
        assert stationary * halves == stationary
    exchange = Matrix([[0, 1], [1, 0]])
    assert exchange == exchange.T
    assert exchange**2 == eye(2)


@pytest.mark.equation("M6")
def test_the_ratios_of_the_proposals():
    x, z, step = positives("x z step")
    y = reals("z_d")
    moved = x * exp(step * y)
    forwards = log_gaussian(log(z), log(x), step) - log(z)
    backwards = log_gaussian(log(x), log(z), step) - log(x)
    equal(backwards - forwards, log(z) - log(x))
    equal(sympy.expand_log(log(moved), force=True) - log(x), step * y)
    # Langevin, in one number with the metric 1/m: both q are densities of momenta
    position, r, g0, g1 = reals("position r g0 g1")
    m = positives("m")
    there = position + step / m * (r + step / 2 * g0)
    r_end = r + step / 2 * g0 + step / 2 * g1
    deviation = step / sympy.sqrt(m)
    forwards = log_gaussian(there, position + step**2 / 2 / m * g0, deviation)
    backwards = log_gaussian(position, there + step**2 / 2 / m * g1, deviation)
    equal(backwards - forwards, r**2 / (2 * m) - r_end**2 / (2 * m))
    # a symmetric walk: "accepted when more probable" holds there, the ratio being 1
    a, b = reals("a b")
    equal(log_gaussian(a, b, step) - log_gaussian(b, a, step), 0)
    off_by(0, backwards - forwards, r_end**2 / (2 * m) - r**2 / (2 * m))


POSITION, MOMENTUM, STEP, MASS = reals("theta:2"), reals("r:2"), reals("step"), positives("m:2")
COEFFICIENTS = reals("c:4")


def log_target(theta):
    """Coupled and not Gaussian: third and fourth order."""
    (a, b), (c0, c1, c2, c3) = theta, COEFFICIENTS
    return -c0 * a**2 - c1 * b**2 - c2 * a * b - c3 * a**2 * b**2


def slope(theta):
    symbols = reals("at:2")
    at = dict(zip(symbols, theta, strict=True))
    return [diff(log_target(symbols), each).subs(at, simultaneous=True) for each in symbols]


def step_of(theta, r, step):
    """The three printed lines, with the metric."""
    g = slope(theta)
    r = [r[k] + step / 2 * g[k] for k in range(2)]
    theta = [theta[k] + step * r[k] / MASS[k] for k in range(2)]
    g = slope(theta)
    return theta, [r[k] + step / 2 * g[k] for k in range(2)]


@pytest.mark.equation("M8")
def test_the_leapfrog_keeps_volume_and_is_reversible():
    # the Jacobian matrix of each line is a shear
    variables = [*POSITION, *MOMENTUM]
    kick = [*POSITION, *(MOMENTUM[k] + STEP / 2 * slope(POSITION)[k] for k in range(2))]
    drift = [*(POSITION[k] + STEP * MOMENTUM[k] / MASS[k] for k in range(2)), *MOMENTUM]
    for line in (kick, drift):
        jacobian = Matrix(4, 4, lambda i, j, line=line: diff(line[i], variables[j]))
        equal(jacobian.det(), 1)
        assert all(jacobian[k, k] == 1 for k in range(4))
    # the shears undone by those of -step; three lines in a row are their own mirror image
    back_kick = [each.subs(STEP, -STEP) for each in kick]
    back_drift = [each.subs(STEP, -STEP) for each in drift]
    for there, back in ((kick, back_kick), (drift, back_drift)):
        moved = dict(zip(variables, there, strict=True))
        equal([each.subs(moved, simultaneous=True) for each in back], variables)
    kicked = dict(zip(variables, kick, strict=True))
    drifted = [each.subs(kicked, simultaneous=True) for each in drift]
    last = [each.subs(dict(zip(variables, drifted, strict=True)), simultaneous=True)
            for each in kick]  # fmt: skip
    theta, r = step_of(POSITION, MOMENTUM, STEP)
    assert last == [*theta, *r]
    # reversing the momentum is reversing the step
    other_theta, other_r = step_of(POSITION, [-each for each in MOMENTUM], STEP)
    back_theta, back_r = step_of(POSITION, MOMENTUM, -STEP)
    equal(other_theta, back_theta)
    equal(other_r, [-each for each in back_r])


@pytest.mark.equation("M8")
def test_the_energy_error_of_the_leapfrog_is_of_second_order():
    # a Gaussian of deviation 1, where a path of fixed length is a rotation times a scaling
    theta, r, h = reals("theta r h")
    half = r - h / 2 * theta
    there = theta + h * half
    end = half - h / 2 * there
    # it keeps H + h^2 H_2 exactly: H_2 = -theta^2/8
    modified = HALF * theta**2 * (1 - h**2 / 4) + HALF * r**2
    equal(modified.subs({theta: there, r: end}, simultaneous=True), modified)
    energy = HALF * theta**2 + HALF * r**2
    error = energy.subs({theta: there, r: end}, simultaneous=True) - energy
    equal(error, h**2 * (there**2 - theta**2) / 8)  # h^2 [H_2(start) - H_2(end)]
    # without the last half step: an error of first order in one step, h^0 over a path
    wrong = energy.subs({theta: there, r: half}, simultaneous=True) - energy
    first = diff(wrong, h).subs(h, 0)
    equal(diff(error, h).subs(h, 0), 0)
    off_by(first, 0, HALF * theta * r)
    # and its motion is that of half the potential
    potential = HALF * (theta**2 / 2) + HALF * r**2
    kept = potential.subs({theta: there, r: half}, simultaneous=True) - potential
    equal(diff(kept, h).subs(h, 0), 0)


@pytest.mark.equation("M9")
def test_the_u_turn_criterion_and_the_printed_sign():
    t = reals("t")
    start = reals("s:2")
    where = [sympy.Function(f"theta{k}")(t) for k in range(2)]
    speed = [diff(each, t) for each in where]
    distance = HALF * sum((where[k] - start[k]) ** 2 for k in range(2))
    right = sum(speed[k] * (where[k] - start[k]) for k in range(2))
    equal(diff(distance, t), right)
    letters = reals("v:2 gap:2")
    at = {where[k]: start[k] + letters[2 + k] for k in range(2)}
    named = dict(zip(speed, letters[:2], strict=True))
    printed = sum(speed[k] * (start[k] - where[k]) for k in range(2)).xreplace(named).subs(at)
    right = right.xreplace(named).subs(at)
    off_by(printed, right, -2 * (letters[0] * letters[2] + letters[1] * letters[3]))
    # the trapezium rule: positions differ by the sum of momenta, the ends counted half
    r, step, mass = reals("r:3"), reals("step"), positives("m")
    gap = sum(step / mass * (r[k] + r[k + 1]) / 2 for k in range(2))
    equal(gap, step / mass * (sum(r) - r[0] / 2 - r[2] / 2))


# ADVI


@pytest.mark.equation("M13")
def test_what_advi_minimises_and_what_the_paper_prints():
    theta, x, eps = reals("theta x eps")
    mu, sigma = reals("mu"), positives("sigma")
    log_joint = log_gaussian(theta, 0, 1) + log_gaussian(x, theta, 1)
    log_evidence = log_gaussian(x, 0, sympy.sqrt(2))
    log_posterior = log_gaussian(theta, x / 2, 1 / sympy.sqrt(2))
    equal(log_joint, log_posterior + sympy.expand_log(log_evidence, force=True))
    moved = {theta: mu + sigma * eps}
    log_q = log_gaussian(theta, mu, sigma)

    def mean(line):
        return expectation(line.subs(moved), eps)

    divergence = mean(log_q - log_posterior)
    entropy = -mean(log_q)
    boxed = -(mean(log_joint) + entropy) + log_evidence
    equal(divergence, sympy.expand_log(boxed, force=True))
    printed = -mean(log_joint) - mean(log_q) + log_evidence
    off_by(printed, boxed, 2 * entropy)
    equal(2 * entropy, 1 + LOG_2PI + 2 * log(sigma))
    numbers = {mu: Rational(3, 10), sigma: Rational(6, 10), x: Rational(3, 2)}
    assert abs(float(divergence.subs(numbers)) - 0.22675) < 5e-6
    assert abs(float(printed.subs(numbers)) - 2.04298) < 5e-6
    # without a minimum: E log q to +infinity, so the printed cost to -infinity
    assert sympy.limit((printed - log_evidence).subs({mu: 0, x: 0}), sigma, 0) == -sympy.oo


@pytest.mark.equation("M14")
def test_the_joint_in_real_coordinates_keeps_the_evidence():
    # T = logit of three heads and nine tails: r^3 (1-r)^9, integrated over r and over zeta
    r, zeta = positives("r"), reals("zeta")
    joint = r**3 * (1 - r) ** 9
    inverse = sigmoid(zeta)
    jacobian = diff(inverse, zeta)
    equal(jacobian, inverse * (1 - inverse))
    density = joint.subs(r, inverse) * jacobian
    # substituted back, d zeta = dr / (r (1 - r)): the integrand is the joint again
    equal((density / jacobian).subs(zeta, log(r / (1 - r))), joint)
    evidence = sympy.integrate(sympy.expand(joint), (r, 0, 1))
    assert evidence == Rational(1, 2860)
    without = sympy.integrate(sympy.expand(sympy.cancel(joint / (r * (1 - r)))), (r, 0, 1))
    off_by(without, evidence, without - evidence)
    assert sympy.cancel(joint / (r * (1 - r)) / (r**2 * (1 - r) ** 8)) == 1  # Beta(3, 9)
    # KL in either space: the factors of q and of the posterior cancel
    q, p, factor = positives("q p factor")
    equal(log(q / factor) - log(p / factor), log(q) - log(p))
    # maxima do move
    top = sympy.solve(diff(log(joint), r), r)
    moved = sympy.solve(diff(log(r**4 * (1 - r) ** 10), r), r)
    off_by(moved[0], top[0], Rational(4, 14) - Rational(3, 12))


# M15: each map in as many numbers as it needs
ZETA, D_THETA, LOW, HIGH = reals("z:3"), reals("g:3"), reals("low"), positives("width")


def maps():
    """Theta of zeta, the log of each diagonal entry of J, and its slope."""
    width = Rational(5, 2)
    ordered = [ZETA[0], ZETA[0] + exp(ZETA[1]), ZETA[0] + exp(ZETA[1]) + exp(ZETA[2])]
    return {
        "identity": (list(ZETA), [0, 0, 0], [0, 0, 0]),
        "log": ([exp(z) for z in ZETA], list(ZETA), [1, 1, 1]),
        "softplus": (
            [softplus(z) for z in ZETA],
            [-softplus(-z) for z in ZETA],
            [sigmoid(-z) for z in ZETA],
        ),
        "logit": (
            [-1 + width * sigmoid(z) for z in ZETA],
            [log(width) - softplus(z) - softplus(-z) for z in ZETA],
            [sigmoid(-z) - sigmoid(z) for z in ZETA],
        ),
        "ordered": (ordered, [0, ZETA[1], ZETA[2]], [0, 1, 1]),
    }


@pytest.mark.equation("M15")
@pytest.mark.parametrize("which", ["identity", "log", "softplus", "logit", "ordered"])
def test_the_maps_and_their_jacobian_determinants(which):
    theta, logs, slopes = maps()[which]
    jacobian = Matrix(3, 3, lambda i, j: diff(theta[i], ZETA[j]))
    assert jacobian.is_lower
    triangle = Matrix(3, 3, lambda i, j: sympy.Symbol(f"t{i}{j}") if j <= i else 0)
    assert triangle.det() == sympy.prod(triangle.diagonal())
    equal([exp(each) for each in logs], list(jacobian.diagonal()))
    log_det = sum(logs)
    equal([diff(log_det, z) for z in ZETA], slopes)
    pulled = jacobian.T * Matrix(D_THETA)
    if which == "ordered":
        later = [sum(D_THETA), D_THETA[1] + D_THETA[2], D_THETA[2]]
        equal(pulled, [later[0], exp(ZETA[1]) * later[1], exp(ZETA[2]) * later[2]])
    else:
        assert jacobian.is_diagonal()


@pytest.mark.equation("M15")
def test_the_maps_are_inverted_and_blocks_add():
    z = ZETA[0]
    equal(log(exp(softplus(z)) - 1), z)
    s = sigmoid(z)
    theta = LOW + HIGH * s
    equal((theta - LOW) / (LOW + HIGH - theta), s / sigmoid(-z))
    equal(s / sigmoid(-z), exp(z))
    equal(diff(s, z), s * sigmoid(-z))
    equal(log(s), -softplus(-z))


@pytest.mark.equation("M16")
def test_the_jacobian_of_the_elliptical_standardisation_is_not_one():
    standardised = C.inv() * (Matrix(W) - MEAN)
    jacobian = Matrix(2, 2, lambda i, j: diff(standardised[i], W[j]))
    right = 1 / (DIAGONAL[0] * DIAGONAL[1])
    equal(jacobian, C.inv())
    equal(jacobian.det(), right)
    off_by(1, right, 1 - right)
    numbers = {DIAGONAL[0]: Rational(8, 10), DIAGONAL[1]: Rational(6, 10)}
    assert right.subs(numbers) == Rational(100, 48)
    # it meets the factor inside q: q(mu + C eta) |det C| = N(eta; 0, I)
    density = exp(LOG_Q)
    equal(density * C.det(), gaussian(EPS[0], 0, 1) * gaussian(EPS[1], 0, 1))
    # with a 1 in its place, q has mass |det C|, and the entropy loses log |det C|
    wrong = -expectation(LOG_Q + log(C.det()), *EPS)
    off_by(wrong, -expectation(LOG_Q, *EPS), -log(DIAGONAL[0]) - log(DIAGONAL[1]))


@pytest.mark.equation("M17")
def test_the_gradients_through_the_maps():
    # theta = (e^z0, softplus z1), a joint with a product; two noise vectors
    noise = [reals("a:2"), reals("b:2")]
    a, b = positives("theta0 theta1")
    joint = 2 * log(a) - a * b + log(b) - b**2
    z = reals("z0 z1")
    theta = {a: exp(z[0]), b: softplus(z[1])}
    log_det = z[0] - softplus(-z[1])
    whole = joint.subs(theta) + log_det
    jacobian = Matrix([[diff(theta[each], letter) for letter in z] for each in (a, b)])
    bracket = jacobian.T * Matrix([diff(joint, a), diff(joint, b)]).subs(theta)
    g = [bracket[k] + diff(log_det, z[k]) for k in range(2)]
    equal([diff(whole, each) for each in z], g)

    moves = [dict(zip(z, list(MEAN + C * Matrix(each)), strict=True)) for each in noise]
    elbo = sum(whole.subs(move) for move in moves) / 2 + log(DIAGONAL[0]) + log(DIAGONAL[1])
    outer = sum((Matrix(g).subs(move) * Matrix([each]) for move, each in zip(moves, noise,
                 strict=True)), zeros(2, 2)) / 2  # fmt: skip
    for_mu = [sum(g[k].subs(move) for move in moves) / 2 for k in range(2)]
    diagonal = [outer[k, k] + 1 / DIAGONAL[k] for k in range(2)]
    equal_at_points([diff(elbo, each) for each in MU], for_mu)
    equal_at_points([diff(elbo, each) for each in (LOWER, *DIAGONAL)], [outer[1, 0], *diagonal])
    # printed: above the diagonal the outer product and the entry of C^-T are left
    printed = outer + C.inv().T
    off_by(printed[0, 1] - outer[0, 1], 0, -LOWER / (DIAGONAL[0] * DIAGONAL[1]))
    # where it leads: a Gamma posterior under T = log
    shape, rate, mu = positives("A B mu")
    sigma = positives("sigma")
    limit = shape * mu - rate * exp(mu + sigma**2 / 2) + log(sigma)
    best = {mu: log(shape / rate) - 1 / (2 * shape), sigma: 1 / sympy.sqrt(shape)}
    equal([sympy.simplify(diff(limit, each).subs(best)) for each in (mu, sigma)], [0, 0])


def equal_at_points(left, right):
    """As `equal`, for exponentials of sums: e^(m + l e) is split into factors first."""
    equal(
        *([sympy.expand_power_exp(sympy.expand(each)) for each in line] for line in (left, right))
    )


# Conjugacy


@pytest.mark.equation("M18")
def test_the_posterior_of_a_coin():
    r = positives("r")
    for heads, tails in ((1, 0), (3, 4), (7, 2), (0, 2)):
        integral = sympy.integrate(sympy.expand(r**heads * (1 - r) ** tails), (r, 0, 1))
        count = sympy.factorial
        assert integral == count(heads) * count(tails) / count(heads + tails + 1)
        if tails:  # one step by parts
            after = sympy.integrate(sympy.expand(r ** (heads + 1) * (1 - r) ** (tails - 1)),
                                    (r, 0, 1))  # fmt: skip
            assert integral == Rational(tails, heads + 1) * after
        # the binomial coefficient cancels
        ways = sympy.binomial(heads + tails, heads)
        density = r**heads * (1 - r) ** tails
        equal(ways * density / (ways * integral), density / integral)
    # one head: printed p, normalised 2 p
    off_by(r, 2 * r, -r)
    assert sympy.integrate(r, (r, 0, 1)) == HALF


@pytest.mark.equation("M19")
def test_the_beta_row():
    p, a, b = positives("p a b")
    data = (1, 0, 1, 1)
    kernel = p ** (a - 1) * (1 - p) ** (b - 1)
    likelihood = sympy.prod(p**x * (1 - p) ** (1 - x) for x in data)
    posterior = p ** (a + 3 - 1) * (1 - p) ** (b + 1 - 1)
    equal(sympy.powsimp(kernel * likelihood / posterior), 1)
    # as printed: alpha - 1 successes and beta - 1 failures, without data
    off_by(sympy.expand_log(log(kernel), force=True), sympy.expand_log(log(posterior), force=True),
           -3 * log(p) - log(1 - p))  # fmt: skip

    # log P(D) = A(posterior) - A(prior), and the predictive is the mean
    def normaliser(first, second):
        return gamma(first) * gamma(second) / gamma(first + second)

    ratio = normaliser(a + 1, b) / normaliser(a, b)
    equal(sympy.gammasimp(ratio), a / (a + b))
    steps = [a / (a + b), b / (a + b + 1), (a + 1) / (a + b + 2), (a + 2) / (a + b + 3)]
    evidence = sympy.gammasimp(normaliser(a + 3, b + 1) / normaliser(a, b))
    equal(sympy.expand_func(evidence), sympy.prod(steps))  # the product of predictions


@pytest.mark.equation("M19")
def test_the_dirichlet_row():
    p, alpha = positives("p:3"), positives("a:3")
    likelihood = p[0] * p[2] * p[0]  # of the data 0, 2, 0
    kernel = sympy.prod(p[k] ** (alpha[k] - 1) for k in range(3))
    counts = (2, 0, 1)
    posterior = sympy.prod(p[k] ** (alpha[k] + counts[k] - 1) for k in range(3))
    equal(sympy.powsimp(kernel * likelihood / posterior), 1)
    printed = sympy.prod(p[k] ** (alpha[k] + 3 - 1) for k in range(3))  # sum of c in every place
    off_by(log(printed), log(posterior), log(p[0]) + 3 * log(p[1]) + 2 * log(p[2]))


@pytest.mark.equation("M19")
def test_the_gamma_row():
    rate, a, b = positives("lambda a b")
    data = (3, 1)
    likelihood = sympy.prod(exp(-rate) * rate**x / sympy.factorial(x) for x in data)
    kernel = rate ** (a - 1) * exp(-b * rate)
    posterior = rate ** (a + 4 - 1) * exp(-(b + 2) * rate)
    base = Rational(1, 6)  # 1 / (3! 1!)
    equal(sympy.powsimp(kernel * likelihood / posterior), base)
    off_by(sympy.expand_log(log(kernel), force=True), sympy.expand_log(log(posterior), force=True),
           -4 * log(rate) + 2 * rate)  # as printed: the prior again  # fmt: skip

    def normaliser(shape, speed):
        return gamma(shape) / speed**shape

    y = 3  # one observation: the negative binomial
    evidence = normaliser(a + y, b + 1) / normaliser(a, b) / sympy.factorial(y)
    boxed = gamma(a + y) / (gamma(a) * sympy.factorial(y)) * (b / (b + 1)) ** a / (b + 1) ** y
    equal(sympy.powsimp(sympy.expand_power_base(sympy.powdenest(evidence / boxed, force=True),
                                                force=True)), Integer(1))  # fmt: skip
