"""Values for arguments, as text: what is drawn can be printed, and typed in again."""

from __future__ import annotations

__all__ = ["HINTS", "POOL"]

NUMBERS = """
None|True|False|0|1|2|3|-1|-0.0|0.0|0.5|1.0|1.5|1e-320|1e-200|1e16|1e308|-1e308|np.nan|np.inf|-np.inf|
10**400|-10**400|2**63|2**64|-2**63-1|1j|Fraction(1, 3)|Decimal('0.5')|Decimal('nan')|pd.NA|pd.NaT|
np.float16(0.5)|np.float32(0.3)|np.longdouble('0.5')|np.float64(np.nan)|np.int8(3)|np.int64(2)|
np.uint64(2**63)|np.bool_(True)|np.datetime64('2020-01-01')|np.timedelta64(3, 'D')
"""
TEXT = """''|'x'|'nan'|'1_0'|'\\0'|'é' * 300|b'x'|np.str_('x')"""
OTHERS = """
[]|()|{}|set()|[1, 2]|(3,)|(2, 3, 1)|[0.5]|{'a': 5}|{'a': slice(0, 2)}|{1, 2}|[[1, 2], [3]]|[None]|
['a', 'b']|iter([1, 2])|(i for i in range(3))|range(3)|slice(0, 2)|object()|(lambda *a: None)|
(lambda *a: 'x')|(lambda *a: np.ones(3))|Adam|np|Exception('x')|...|memoryview(b'ab')|
bytearray(b'ab')|np.random.default_rng(0)|np.random.RandomState(0)|np.random.PCG64(0)|np.random|Path('none')
"""
ARRAYS = """
np.array(3)|np.array(0.5)|np.array(np.nan)|np.array([0.5])|np.array([])|np.empty((0, 2))|
np.empty((3, 0))|np.zeros(2)|np.ones((12, 2))|np.ones((12, 1))|np.ones(12)|-np.ones(12)|
np.zeros((2, 2, 2))|np.full((12, 2), np.nan)|np.full(12, np.inf)|np.full((12, 2), 1e200)|
np.full((12, 2), 1e-320)|np.array(['a', 'b'])|np.array([1, 'a', None], object)|
np.array([[1, 2], [3, pd.NA]], object)|np.array([10**400, 1], object)|np.arange(12)|
np.arange(24).reshape(12, 2)|np.arange(2**53, 2**53 + 12)|np.full((12, 2), 2**63, object)|X[::-1]|
np.asfortranarray(X)|X.astype('f2')|X.astype('g')|X.astype('c16')|X.astype('>f8')|X.tolist()|
1e12 * X|np.arange(12).astype('M8[D]')|np.ma.masked_array(X, X > 0)|np.ma.masked_all((12, 2))|
sparse.csr_matrix(X)|np.matrix(X)|pd.DataFrame(X)|pd.DataFrame(X, columns=['a', 'b'])|
pd.DataFrame({'a': [1, pd.NA] * 6, 'b': range(12)})|pd.Series([1.0, None] * 6)|
pd.Series(range(12), dtype='Int64')|pd.Categorical(['a', 'b'] * 6)|np.zeros(12, 'f8, i4')|
np.broadcast_to(1.0, (12, 2))|np.tile(['no', 'yes'], 6)|np.tile([True, False], 6)
"""
PARTS = """
GaussianPrior(0.5)|LaplacePrior()|StudentTPrior()|ScaleMixturePrior(learn=True)|GaussianPrior|
LayerwiseGaussianPrior()|GaussianLikelihood(0.1)|HeteroscedasticLikelihood()|StudentTLikelihood()|
PoissonLikelihood()|BernoulliLikelihood()|CategoricalLikelihood()|MeanField()|FullRank()|PointMass()|
Adam()|SGD(0.01)|Momentum()|Adam(1e200)|FreeEnergy(0.5)|Renyi(0.5)|EUBO()|MLE()|MAP()|HMC()|NUTS()|
MetropolisHastings()|Sampling('hmc', draws=3, warm_up=3, chains=2)|EarlyStopping(1)|LinearWarmUp()|
ChEES()|CyclicalWarmUp()|HalfCauchy()|Flipout|StickingTheLanding|Cosine()|StepDecay(1)
"""


def _split(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.replace("\n", "").split("|"))


POOL = tuple(_split(part) for part in (NUMBERS, TEXT, OTHERS, ARRAYS, PARTS))

# Values that get further, by the name of the argument
HINTS = {
    name: _split(values)
    for name, values in {
        "hidden_layer_sizes": "()|(3,)|2|[2, 2]|np.array(3)|np.array([3, 2])|(0,)|(2.0,)|(2**40,)",
        "activation": "'tanh'|'relu'|'sigmoid'|'silu'|'softplus'|'gelu'|'gelu-tanh'",
        "prior": "'gaussian-learned'|'laplace'|'mixture-learned'|'student-t-learned'|'layerwise'",
        "likelihood": "'gaussian'|'heteroscedastic'|'poisson'|'student-t'|'bernoulli'|"
        "'categorical'",
        "inference": "'mean-field'|'full-rank'|'map'|'mle'|PointMass()|MeanField(rho_offset=-1.0)|"
        "Sampling('hmc', draws=3, warm_up=3, chains=2)|"
        "Sampling('mh', draws=3, warm_up=3, chains=2)",
        "gradient_estimator": "'flipout'|'local-reparameterisation'|'sticking-the-landing'|"
        "'closed-form-kl'",
        "objective": "'iwae'|'eubo'|'renyi'|'mle'|'map'|FreeEnergy(0.1)",
        "kl_weights": "'geometric'|'proportional'|(lambda sizes: sizes)",
        "kl_warm_up": "'linear'|'cyclical'|'none'|(lambda epoch, epochs: np.nan)|3",
        "optimizer": "Adam(1.0)|SGD(1e5)|Momentum(0.1)|Adam(1e-2, schedule=lambda *a: np.nan)",
        "early_stopping": "EarlyStopping(1)|EarlyStopping(2, 0.1)",
        "validation_fraction": "0.2|0.99",
        "dtype": "'float32'|np.float32|float|'float16'|int",
        "random_state": "1|np.random.default_rng(1)",
        "sampler": "'nuts'|'chees'|'hmc'|'mams'|'mclmc'|'mh'|HMC(0.5)|ChEES(path=2.0)|"
        "NUTS(max_depth=2)|MetropolisHastings()|MAMS(0.5)|MCLMC(0.5)|NUTS",
        "metric": "'dense'|'diagonal'|mcmc.DiagonalMetric(np.ones(3))|mcmc.DenseMetric(np.eye(2))",
        "method": "'central'|'complex'",
        "y": "labels|counts|texts|1e12 * y|np.column_stack([y, y])|Y|np.zeros(12)|[1] * 12|y[:5]",
        "X": "X[:1]|X[:5]|1e12 * X|np.zeros((12, 2))|frame|X[:, :1]|np.where(X > 1, 1e9, X)",
    }.items()
}
