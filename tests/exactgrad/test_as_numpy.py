"""Exact arrays do what NumPy's do: numbers and slopes of its functions, and writing into views."""

from decimal import localcontext

import numpy as np
import pytest
import scipy.special as sp

from exactgrad.fields.digits import N_DIGITS, Digits, context
from exactgrad.trace.arrays import Exact
from exactgrad.trace.copies import Copies
from exactgrad.verdict.data import to_exact

# Expressions in x, which is a matrix, one of positive numbers, a square one, and a stack of them
MATRIX = """
    np.sum(x,0) np.sum(x,axis=1,keepdims=True) np.sum(x,where=x>0) np.sum(x,initial=2.0)
    np.mean(x,1) np.mean(x,axis=(0,1)) np.var(x) np.var(x,0,ddof=1) np.std(x,1)
    np.std(x,axis=0,ddof=1,keepdims=True) np.prod(x) np.prod(x,axis=0) np.cumsum(x) np.cumsum(x,1)
    np.cumprod(x) np.cumprod(x,axis=1) np.max(x) np.max(x,0) np.max(x,axis=1,keepdims=True)
    np.min(x,1) np.max(x,initial=1.0) np.amax(x,axis=(0,1)) np.ptp(x,0,keepdims=True) np.argmax(x)
    np.argmax(x,1) np.argmin(x,axis=0) np.sort(x) np.sort(x,0) np.argsort(x) np.clip(x,-.5,.5)
    np.clip(x,None,1) np.clip(x,0,None) np.where(x>0,x,2*x) np.abs(x) np.fabs(x) np.sign(x)
    np.square(x) np.power(x,3) np.power(2.0,x) x**2 x**0 x**-1 x**1.0 2**x np.negative(x)
    np.positive(x) np.reciprocal(x) np.diff(x) np.diff(x,axis=0) np.diff(x,2) np.roll(x,1)
    np.roll(x,1,axis=0) np.flip(x) np.flip(x,1) np.flipud(x) np.fliplr(x) np.rot90(x)
    np.repeat(x,2) np.repeat(x,2,axis=1) np.repeat(x,[1,2],axis=0) np.tile(x,2) np.tile(x,(2,1))
    np.take(x,[0,2],axis=1) np.take(x,[1,3]) np.take_along_axis(x,np.argsort(x.shape)[None],1)
    np.delete(x,1,axis=1) np.delete(x,0) np.diag(x) np.diag(x,1) np.diagonal(x,1) np.trace(x)
    np.trace(x,1) np.tril(x) np.tril(x,-1) np.triu(x,1) np.concatenate([x,x],1)
    np.concatenate([x,x],axis=None) np.stack([x,2*x],1) np.hstack([x,x]) np.vstack([x,x])
    np.column_stack([x,x]) np.dstack([x,x]) np.append(x,x) np.append(x,x,axis=0)
    np.split(x,3,axis=1)[1] np.array_split(x,2,axis=1)[1] np.hsplit(x,3)[0] np.vsplit(x,2)[1]
    np.squeeze(x[None]) np.expand_dims(x,(0,2)) np.moveaxis(x,0,1) np.swapaxes(x,0,1)
    np.transpose(x) np.ravel(x) np.reshape(x,(3,2)) x.T.reshape(2,3) x.T.flatten()
    np.broadcast_to(x,(2,2,3)) np.atleast_3d(x) np.copy(x) np.average(x) np.average(x,axis=0)
    np.average(x,axis=1,weights=[1,2,3]) np.average(x,weights=np.abs(x)) np.nansum(x)
    np.nanmean(x) np.nan_to_num(x) np.cross(x,x[::-1]) np.inner(x,x) np.outer(x,x) np.vdot(x,x)
    np.dot(x,x.T) np.matmul(x,x.T) np.einsum('ij->j',x) np.einsum('ij,ij',x,x)
    np.einsum('ij,kj->ik',x,x) np.einsum('...j,...j->...',x,x) np.einsum('ij->ji',x)
    np.tensordot(x,x,2) np.tensordot(x,x,((0,),(0,))) np.linalg.norm(x) np.linalg.norm(x,axis=1)
    np.linalg.norm(x,axis=(0,1)) np.linalg.pinv(x) np.add.reduce(x) np.add.reduce(x,axis=None)
    np.multiply.reduce(x,1) np.maximum.reduce(x) np.add.accumulate(x) np.add.accumulate(x,axis=1)
    np.multiply.accumulate(x,1) np.subtract.outer(x,x) np.multiply.outer(x[0],x[1])
    np.add.reduceat(x,[0,1]) np.add.reduceat(x,[0,2],axis=1)
    np.add.reduceat(x,[1,0,0],axis=1) np.exp(x) np.expm1(x) np.exp2(x)
    np.tanh(x) np.sinh(x) np.cosh(x) np.sin(x) np.cos(x) np.tan(x) np.arctan(x) np.arcsin(x/3)
    np.arccos(x/3) np.arcsinh(x) np.arctanh(x/3) np.cbrt(x) np.deg2rad(x) np.arctan2(x,x[::-1])
    np.arctan2(x,-1.0) np.arctan2(-1.0,x) np.hypot(x,x[::-1]) np.logaddexp(x,x[::-1])
    np.float_power(np.abs(x),x) np.power(np.abs(x),x) np.maximum(x,.5) np.minimum(x,x[::-1])
    np.fmax(x,.5) np.fmin(x,.5) np.true_divide(x,2) np.real(x) np.imag(x) np.isnan(x)
    np.isfinite(x) np.allclose(x,x) np.signbit(x) np.conjugate(x) np.count_nonzero(x>0)
    np.nonzero(x>0)[0] np.any(x>0) np.all(x>0,1) np.compress([True,False],x,axis=0)
    np.vectorize(np.square)(x) np.vectorize(np.maximum)(x,.5) np.vectorize(bool)(x)
    x.view() x.view(np.ndarray) x.view(float)
    x[np.triu_indices(2)] x[[0,1],[2,0]] x[:,::-1] x[x>0] x[-1]
    sp.expit(x) sp.log_expit(x) sp.erf(x) sp.erfc(x) sp.ndtr(x) sp.log_ndtr(x) sp.softmax(x,1)
    sp.softmax(x,axis=0) sp.softmax(x) sp.log_softmax(x,1) sp.log_softmax(x) sp.logsumexp(x)
    sp.logsumexp(x,1) sp.logsumexp(x,axis=0,keepdims=True) sp.logsumexp(x,axis=(0,1))
    sp.logsumexp(x,b=2) sp.erf(x[:0]) x.item(3) x.item(1,2)
    np.meshgrid(x[0],x[1],indexing='ij')[0] np.iscomplexobj(x) np.may_share_memory(x,x)
    x*np.array([1,2.5,-3],object) np.isclose(x,x)
    np.digitize(x,[0.,1.]) np.searchsorted([0.,1.],x[0]) np.flatnonzero(x)
    np.pad(x,1,constant_values=2)
    np.average(x,weights=np.abs(x),axis=0) np.cov(x) np.cov(x,ddof=0) np.corrcoef(x)[0,1]
    np.trapezoid(x) np.trapezoid(x,x*x) np.gradient(x[0]) np.vander(x[0]) np.kron(x,x)
    np.pad(x,1,mode='mean') np.linalg.norm(x,1) np.linalg.norm(x,-np.inf) np.linalg.norm(x,3,axis=0)
    np.linalg.norm(x.T[::-1]) np.linalg.vector_norm(x) np.linalg.multi_dot([x,x.T,x])
    np.ravel(x.T,order='K') np.ravel(x[:,::2],order='K') np.cumulative_sum(x,axis=0) np.nancumsum(x)
    np.piecewise(x,[x<0,x>=0],[0,1]) np.extract(x>0,x) np.resize(x,(3,3)) np.angle(x)
    np.array_equal(x,x) np.full_like(x,2.0) np.full_like(x,2,dtype=int) np.ones_like(x,shape=(2,))
    np.mean(x,dtype=float) x.sum(dtype=float) np.atleast_2d(x[0],x)[0] np.array(x[0],ndmin=2)
    np.array([x[0],x[1]],ndmin=3) np.lib.stride_tricks.sliding_window_view(x,2,-1)
    np.lib.stride_tricks.sliding_window_view(x,(2,2))
    np.lib.stride_tricks.as_strided(x,(2,2,2),(24,8,8))
    np.lib.stride_tricks.as_strided(x[::-1,::2],(2,3),(-x.nbytes//2,0))
    np.insert(x,[0,2],x[:,:1],axis=1)
    np.meshgrid(x[0],[1.,2.])[0] np.meshgrid(x[0],x[1],indexing='ij')[1] np.diag(x[0],1)
    np.median(x) np.median(x,axis=0) np.partition(x,1)[:,1]
"""
POSITIVE = """
    np.log(x) np.log1p(x) np.log2(x) np.log10(x) np.sqrt(x) x**0.5 x**-1.5 x**0.3 np.power(x,x)
    x**np.arange(3)
    sp.xlogy(x,x) sp.xlog1py(x,x) sp.entr(x) sp.rel_entr(x,x[::-1]) sp.gammaln(x) sp.loggamma(x)
    sp.digamma(x) sp.psi(x) sp.polygamma(1,x) sp.polygamma(2,x) sp.betaln(x,x[::-1]) sp.logit(x/3)
    np.var(np.log(x)) sp.logsumexp(x,b=x) sp.softmax(x)
"""
SQUARE = """
    np.linalg.inv(x) np.linalg.det(x) np.linalg.slogdet(x)[1] np.linalg.slogdet(x)[0]
    np.linalg.solve(x,x.T) np.linalg.solve(x,x[0]) np.linalg.matrix_power(x,3)
    np.linalg.matrix_power(x,-2) np.linalg.matrix_power(x,0) np.linalg.pinv(x)
    np.linalg.inv(np.stack([x,2*x])) np.linalg.det(np.stack([x,2*x])) np.einsum('ii',x)
    np.einsum('ii->i',x) np.einsum('ij,jk,kl->il',x,x,x) np.einsum('ij,j',x,x[0])
"""
STACK = """
    x@x.transpose(0,2,1) x.transpose((0,2,1)) np.dot(x,x[0].T)
    np.inner(x,x) np.tensordot(x,x,((1,2),(1,2)))
    np.einsum('bij,bkj->bik',x,x) np.einsum('bij,bij->b',x,x)
    np.einsum('bij,bkl->bl',x,x[:,:1]) np.sum(x,(0,2)) np.max(x,(0,2))
    np.max(x,axis=(1,2),keepdims=True) np.cumsum(x,-1) np.sort(x,1) np.argmax(x,-1)
    np.var(x,(0,1)) np.transpose(x,(2,0,1)) np.transpose(x,axes=[1,0,2])
    np.moveaxis(x,[0,1],[1,2]) np.rollaxis(x,2) np.rot90(x,axes=(0,2)) np.diagonal(x,0,0,2)
    np.trace(x,0,0,2) np.trace(x[None],0,1,3) np.partition(x,1)
    np.vecdot(x,x) np.linalg.norm(x,axis=(1,2)) np.linalg.norm(x)
    np.squeeze(x[:,:1],1) np.swapaxes(x,-1,0)
"""
NUMBERS = np.array([[0.4, -1.0, 1.1], [2.15, -0.33, 1.59]])
CASES = [
    *((text, NUMBERS) for text in MATRIX.split()),
    *((text, np.abs(NUMBERS)) for text in POSITIVE.split()),
    *(
        (text, np.array([[2.0, 0.3, 0.1], [0.4, 1.5, 0.2], [0.3, -0.2, 1.8]]))
        for text in SQUARE.split()
    ),
    *((text, np.random.default_rng(0).standard_normal((2, 3, 2))) for text in STACK.split()),
]


def of(program):
    names = {"np": np, "sp": sp}
    exec(f"def f(x):\n    {program}\n    return r\n", names)
    return names["f"]


def run(f, x):
    """Return the floats, the digits and the slopes of a function of exact numbers, and where to."""
    with localcontext(context(N_DIGITS)):
        field = Digits(1)
        (given,) = to_exact((x,), field, moving=True)
        found = Copies().call(field, f, given.copy())
        if type(found) is not Exact:
            return np.asarray(found, float), np.asarray(found, float), None, None
        a, b, way = (
            np.asarray(z[..., 0], float) for z in (found.primal, found.tangent, given.tangent)
        )
        return found.floats, a, b, way


@pytest.mark.parametrize(("text", "x"), CASES, ids=[text for text, _ in CASES])
def test_a_function_of_exact_numbers_is_numpys_and_so_is_its_slope(text, x):
    f = of(f"r = {text}")
    v, a, slope, way = run(f, x)
    wanted = np.asarray(f(x.copy()), float)
    assert v.shape == wanted.shape
    np.testing.assert_allclose(v, wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(a, wanted, rtol=1e-10, atol=1e-12)
    if slope is not None:
        one, other, two, three = (
            np.asarray(f(x + step * 1e-5 * way), float) for step in (1, -1, 2, -2)
        )
        measured = (8 * (one - other) - (two - three)) / 12e-5
        np.testing.assert_allclose(slope, measured, rtol=1e-6, atol=1e-7)


# Programs that write: what they leave in r
WRITES = """
y = x[0]; z = y[..., 1]; z[...] = 5; z += 1; r = x
y = x[0]; np.multiply(y[0], y[1], out=y[..., 2]); r = x
r = np.linalg.cross(x[0], x[1])
y = x[::-1]; y[0] = 5; r = x
x.flat[1] = 7.0; r = x
x.ravel()[1] = 7.0; r = x
x.T.ravel()[1] = 7.0; r = x
x.reshape(3, 2)[1] = 7.0; r = x
x.T.reshape(-1)[1] = 7.0; r = x
y = np.asarray(x); y[0] = 9; r = x
y = np.array(x); y[0] = 9; r = x
y = x.astype(float); y[0] = 9; r = x
y = np.squeeze(x[None]); y[0] = 9; r = x
y = np.atleast_2d(x[0]); y[0] = 9; r = x
y = np.expand_dims(x, 0); y[0, 0] = 9; r = x
y = np.moveaxis(x, 0, 1); y[0] = 9; r = x
y = np.split(x, 3, axis=1)[1]; y[:] = 9; r = x
y = x[[0]]; y[0] = 9; r = x
y = x[x > 0]; y[0] = 9; r = x
x[:, [0, 2]] += 1; r = x
x[[0, 0]] += 1; r = x
x[x > 0] *= 2; r = x
x[[0, 1]] = x[[1, 0]]; r = x
a = x[0]; b = x[1]; x[0] = b; x[1] = a; r = x
x[:, 1:] = x[:, :-1]; r = x
x[:, 1:] += x[:, :-1]; r = x
x -= x[0]; r = x
x /= x[0, 0]; r = x
x -= x.max(); r = x
y = x; x = x * 2; r = y
y = x; x *= 2; r = y
np.copyto(x, 1.0, where=x > 0); r = x
x.fill(3.0); r = x
np.fill_diagonal(x, 9.0); r = x
np.add.at(x, ([0, 0], [1, 1]), 1.0); r = x
np.subtract.at(x, ([0, 0], [1, 1]), 1.0); r = x
np.maximum(x, 0, out=x); r = x
np.add(x, 1, out=x, where=x > 0); r = x
y = np.zeros((2, 3), bool); np.less(x, 1, out=y, where=[True, False, True]); r = y * x
y = np.zeros((2, 2)); np.matmul(x, x.T, out=y); r = y
y = np.zeros((2, 3)); y.T[...] = x.T; r = y
y = np.zeros_like(x); y[x > 0] = x[x > 0]; r = y
y = np.empty_like(x); y[:] = x; r = y
y = np.zeros_like(x, shape=(2, 2)); y[0] = x[0, :2]; r = y
y = np.ones_like(x, shape=4); y[:3] = x[0]; r = y
r = np.array([[x[0, 0], 1.0], [2, x[0, 1]]])
r = np.array(sorted(x[0]))
r = sum(x)
s = x[0, 0]; s += 1; r = x
s = x[0].sum(); u = s; u += 1; r = s + 0
s = x[0, 0]; x[0, 0] = 9.0; r = s + 0
s = x[0, 0]; x[0, 0] = x[0, 1]; x[0, 1] = s; r = x
it = [v for v in x[0]]; x *= 2; r = it[0] + 0
m = x.max(); n = m; n *= 2; r = m + 0
y = x[...]; y += 1; r = x
y = x.view(); y += 1; r = x
r = np.vectorize(lambda v, w: (w, v * w if v > 0 else 0), otypes='dd')(x, [[2.0], [3.0]])[1]
y = x[0, ...]; y += 1; r = x
y = x.ravel(); y += 1; r = x
y = x.flatten(); y += 1; r = x
y = +x; y += 1; r = x
y = x[:, 0]; y += 1; r = x
d = np.diagonal(x); x[0, 0] = 9; r = d + 0
d = np.diag(x); x[0, 0] = 9; r = d + 0
y = np.lib.stride_tricks.sliding_window_view(x, 2, 1); x[0, 1] = 9; r = y + 0
y = np.lib.stride_tricks.as_strided(x.T, (3, 2), (8, 8)); x[0, 1] = 9; r = y + 0
y = np.lib.stride_tricks.as_strided(x, (2, 2), (24, 16)); y += 1; r = x
y = np.broadcast_to(x[0], (2, 3)); x[0, 1] = 9; r = y + 0
y = np.rot90(x); y[0, 0] = 9; r = x
y = np.rollaxis(x, 1); y[0, 1] = 9; r = x
y = np.vsplit(x.T, 3)[1]; y[:] = 9; r = x
y = np.flip(x, 1); y[0, 0] = 9; r = x
y = np.stack([x, x], 1); y.reshape(-1)[0] = 9; r = y
x.shape; y = np.atleast_3d(x); y[0, 0] = 9; r = x
y = np.roll(x, 1); y[0] = 9; r = x
np.add.at(x.T, ([0, 0], [1, 1]), 1.0); r = x
np.fill_diagonal(x.T, 9.0); r = x
""".strip().splitlines()


@pytest.mark.parametrize("program", WRITES)
def test_what_is_written_into_arrays_and_views_arrives_where_it_does_in_numpy(program):
    v, a, *_ = run(of(program), NUMBERS)
    wanted = of(program)(NUMBERS.copy())
    np.testing.assert_allclose(v, wanted, rtol=1e-12)
    np.testing.assert_allclose(a, wanted, rtol=1e-12)
