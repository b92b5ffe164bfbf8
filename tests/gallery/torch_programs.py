"""Backward passes that public PyTorch code writes by hand, each right and with a mistake.

Nothing is copied: the formulas are written once more, as small as they can be. A kernel in Triton
or CUDA becomes the same formula on whole tensors. `source` names repository, file and the first
digits of the commit that was read. The last two sections hold what is not the gradient in public
code: what is not meant to be, and bugs; there `mistake` says what is wrong, and the repaired pass
is proved.
"""

import math

import torch
from gallery.frameworks import passes
from gallery.programs import normal
from torch.autograd import Function

TORCH = []
shown = passes(TORCH)

TIMM = "huggingface/pytorch-image-models: timm/layers/activations_me.py at 23f09af"
LIGER = "linkedin/Liger-Kernel: src/liger_kernel/ops"
MEGATRON = "NVIDIA/Megatron-LM: megatron/core"
ENTMAX = "deep-spin/entmax: entmax/activations.py at 11eed00"
GPYTORCH = "cornellius-gp/gpytorch: gpytorch/functions"
MPNCOV = "jiangtaoxie/fast-MPN-COV: src/representation/MPNCOV.py"
FUNCTION_TESTS = "pytorch/pytorch: torch/testing/_internal/autograd_function_db.py at 01caf79"


def numbers(*shape, seed=0):
    """Return a float64 tensor of normal numbers that depend on shape and seed alone."""
    return torch.as_tensor(normal(*shape, seed=seed))


def weighted(apply):
    """Return the loss that weighs the outputs of `apply` by `weights` and sums them.

    A backward pass is right if it is right for every loss, so the weights are data. The loss is a
    function of (theta, weights, *data), where theta is the tuple of tensors to differentiate by,
    and has `apply` as an attribute, for checks of the whole Jacobian.
    """

    def loss(theta, weights, *data):
        return (apply(*theta, *data) * weights).sum()

    loss.apply = apply
    return loss


# --- activations


@shown(
    "Swish",
    TIMM,
    "x s(x), s the sigmoid",
    ("1 + x * (1 - s)", "1 + x * s"),
    "the slope of the sigmoid is s, not s (1 - s)",
)
def swish():
    class Swish(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * torch.sigmoid(x)

        @staticmethod
        def backward(ctx, d_out):
            (x,) = ctx.saved_tensors
            s = torch.sigmoid(x)
            return d_out * s * (1 + x * (1 - s))

    return weighted(Swish.apply), (numbers(4),), numbers(4, seed=1)


@shown(
    "Mish",
    TIMM,
    "x tanh(log(1 + exp x))",
    ("1 - t * t", "1 - t"),
    "the slope of tanh without its square",
)
def mish():
    class Mish(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * torch.tanh(torch.nn.functional.softplus(x))

        @staticmethod
        def backward(ctx, d_out):
            (x,) = ctx.saved_tensors
            t = torch.tanh(torch.nn.functional.softplus(x))
            return d_out * (t + x * torch.sigmoid(x) * (1 - t * t))

    return weighted(Mish.apply), (numbers(4),), numbers(4, seed=1)


@shown(
    "Hard Swish",
    TIMM,
    "x clip(x + 3, 0, 6) / 6",
    ("x / 3 + 0.5", "x / 6 + 0.5"),
    "the slope of a square without its 2",
)
def hard_swish():
    class HardSwish(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * (x + 3).clamp(min=0, max=6) / 6

        @staticmethod
        def backward(ctx, d_out):
            (x,) = ctx.saved_tensors
            slope = (x >= 3).to(x.dtype)
            slope = torch.where((x >= -3) & (x <= 3), x / 3 + 0.5, slope)
            return d_out * slope

    return weighted(HardSwish.apply), (3 * numbers(6),), numbers(6, seed=1)


@shown(
    "SwiGLU with bias",
    f"{MEGATRON}/fusions/fused_bias_swiglu.py at 00caa53",
    "silu(y1) y2, [y1, y2] = y + b",
    ("silu(y_1)), -1)", "silu(y_2)), -1)"),
    "the gate is taken of the wrong half",
)
def bias_swiglu():
    class BiasSwiGLU(Function):
        @staticmethod
        def forward(ctx, y, bias):
            ctx.save_for_backward(y, bias)
            y_1, y_2 = torch.chunk(y + bias, 2, -1)
            return y_1 * torch.sigmoid(y_1) * y_2

        @staticmethod
        def backward(ctx, d_out):
            y, bias = ctx.saved_tensors
            y_1, y_2 = torch.chunk(y + bias, 2, -1)
            s = torch.sigmoid(y_1)
            silu = torch.nn.functional.silu
            d_y = torch.cat((d_out * s * (1 + y_1 * (1 - s)) * y_2, d_out * silu(y_1)), -1)
            return d_y, d_y.sum(0)

    return weighted(BiasSwiGLU.apply), (numbers(3, 4), numbers(4)), numbers(3, 2)


@shown(
    "GEGLU by tanh",
    f"{LIGER}/geglu.py at 15a5210",
    "gelu(a) b",
    ("1 + 3 * 0.044715 * a * a", "1 + 0.044715 * a * a"),
    "the slope of the cube without its 3",
)
def geglu():
    class GEGLU(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            t = torch.tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))
            return 0.5 * a * (1 + t) * b

        @staticmethod
        def backward(ctx, d_out):
            a, b = ctx.saved_tensors
            t = torch.tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))
            d_b = d_out * 0.5 * a * (1 + t)
            d_inner = 0.7978845608028654 * (1 + 3 * 0.044715 * a * a)
            d_a = d_out * b * (0.5 * (1 + t) + 0.5 * a * (1 - t * t) * d_inner)
            return d_a, d_b

    return weighted(GEGLU.apply), (numbers(4), numbers(4, seed=1)), numbers(4, seed=2)


@shown(
    "SwiGLU block of a transformer",
    "facebookresearch/xformers: xformers/ops/swiglu_op.py at 11783ed",
    "(silu(x W1' + b1) * (x W2' + b2)) W3' + b3",
    ("d_x2 @ w2 + d_x1 @ w1", "d_x2 @ w2"),
    "one of the two paths to x is left out",
)
def swiglu_block():
    class SwiGLU(Function):
        @staticmethod
        def forward(ctx, x, w1, b1, w2, b2, w3, b3):
            x1 = x @ w1.transpose(-2, -1) + b1
            x2 = x @ w2.transpose(-2, -1) + b2
            x4 = torch.nn.functional.silu(x1) * x2
            ctx.save_for_backward(x, w1, w2, w3, x1, x2, x4)
            return x4 @ w3.transpose(-2, -1) + b3

        @staticmethod
        def backward(ctx, d_out):
            x, w1, w2, w3, x1, x2, x4 = ctx.saved_tensors
            d_x4 = d_out @ w3
            d_w3 = d_out.transpose(-2, -1) @ x4
            s = 1 / (1 + torch.exp(-x1))
            d_x1 = d_x4 * x2 * s * (1 + x1 * (1 - s))
            d_x2 = d_x4 * x1 * s
            d_x = d_x2 @ w2 + d_x1 @ w1
            d_w1 = d_x1.transpose(-2, -1) @ x
            d_w2 = d_x2.transpose(-2, -1) @ x
            return d_x, d_w1, d_x1.sum(0), d_w2, d_x2.sum(0), d_w3, d_out.sum(0)

    shapes = [(3, 2), (2, 2), (2,), (2, 2), (2,), (2, 2), (2,)]
    theta = tuple(numbers(*shape, seed=seed) for seed, shape in enumerate(shapes))
    return weighted(SwiGLU.apply), theta, numbers(3, 2, seed=9)


@shown(
    "leaky ReLU with bias and scale",
    "rosinality/stylegan2-pytorch: op/fused_act.py at 0ce34eb",
    "sqrt(2) leaky(x + b)",
    ("slope * d_out) * scale", "slope * d_out)"),
    "the scale is left out",
)
def fused_leaky_relu():
    class FusedLeakyReLU(Function):
        @staticmethod
        def forward(ctx, x, bias, slope, scale):
            out = torch.nn.functional.leaky_relu(x + bias, slope) * scale
            ctx.save_for_backward(out)
            ctx.slope, ctx.scale = slope, scale
            return out

        @staticmethod
        def backward(ctx, d_out):
            (out,) = ctx.saved_tensors
            slope, scale = ctx.slope, ctx.scale
            d_x = torch.where(out > 0, d_out, slope * d_out) * scale
            return d_x, d_x.sum(0), None, None

    def apply(x, bias):
        return FusedLeakyReLU.apply(x, bias, 0.2, 2**0.5)

    return weighted(apply), (numbers(3, 2), numbers(2)), numbers(3, 2, seed=1)


# --- normalisation


@shown(
    "RMS norm",
    f"{LIGER}/rms_norm.py at 05dd1f9",
    "w x / sqrt(mean x^2 + eps)",
    ("(d_out * w * x).mean(-1", "(d_out * w * x).sum(-1"),
    "a sum in place of a mean",
)
def rms_norm():
    class RMSNorm(Function):
        @staticmethod
        def forward(ctx, x, w):
            r = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
            ctx.save_for_backward(x, w, r)
            return x * r * w

        @staticmethod
        def backward(ctx, d_out):
            x, w, r = ctx.saved_tensors
            d_r = (d_out * w * x).mean(-1, keepdim=True)
            d_x = r * (d_out * w - r * r * d_r * x)
            return d_x, (d_out * x * r).sum(0)

    return weighted(RMSNorm.apply), (numbers(2, 3), numbers(3)), numbers(2, 3, seed=1)


@shown(
    "layer norm from its output",
    "NVIDIA/apex: apex/normalization/fused_layer_norm.py at 014f30f",
    "w (x - mean) / sd + b",
    ("(out - b) / w", "out / w"),
    "the bias stays in what is taken for the normalised x",
)
def layer_norm_memory_efficient():
    class LayerNorm(Function):
        @staticmethod
        def forward(ctx, x, w, b):
            centred = x - x.mean(-1, keepdim=True)
            r = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
            out = centred * r * w + b
            ctx.save_for_backward(out, w, b, r)
            return out

        @staticmethod
        def backward(ctx, d_out):
            out, w, b, r = ctx.saved_tensors
            x_hat = (out - b) / w
            d_hat = d_out * w
            along = (d_hat * x_hat).mean(-1, keepdim=True)
            d_x = r * (d_hat - d_hat.mean(-1, keepdim=True) - x_hat * along)
            return d_x, (d_out * x_hat).sum(0), d_out.sum(0)

    theta = numbers(2, 3), numbers(3), numbers(3, seed=1)
    return weighted(LayerNorm.apply), theta, numbers(2, 3, seed=1)


@shown(
    "batch norm and leaky ReLU in place",
    "mapillary/inplace_abn: inplace_abn/functions.py at 01d23bf",
    "leaky((|w| + eps) x_hat + b)",
    ("* torch.sign(w)", "* torch.sign(w) ** 2"),
    "the sign of |w| is left out: right for positive weights",
)
def inplace_batch_norm():
    class InPlaceABN(Function):
        @staticmethod
        def forward(ctx, x, w, b):
            centred = x - x.mean(0)
            r = torch.rsqrt((centred * centred).mean(0) + 1e-5)
            z = centred * r * (w.abs() + 1e-5) + b
            out = torch.where(z > 0, z, 0.01 * z)
            ctx.save_for_backward(out, w, b, r)
            return out

        @staticmethod
        def backward(ctx, d_out):
            out, w, b, r = ctx.saved_tensors
            is_on = out > 0
            z = torch.where(is_on, out, out / 0.01)
            d_z = torch.where(is_on, d_out, 0.01 * d_out)
            scale = w.abs() + 1e-5
            x_hat = (z - b) / scale
            d_scale = (d_z * x_hat).sum(0)
            d_b = d_z.sum(0)
            d_x = scale * r * (d_z - d_b / len(out) - x_hat * d_scale / len(out))
            return d_x, d_scale * torch.sign(w), d_b

    theta = numbers(4, 2), torch.tensor([0.8, -1.3]).double(), numbers(2, seed=1)
    return weighted(InPlaceABN.apply), theta, numbers(4, 2, seed=1)


# --- softmax and what takes its place


@shown(
    "softmax with a mask",
    "microsoft/DeBERTa: DeBERTa/deberta/ops.py at 009cc44",
    "softmax of x where the mask is 1, else 0",
    ("d_out - (d_out * p).sum", "d_out - d_out.sum"),
    "the mean of the cotangent is not weighted by the probabilities",
)
def masked_softmax():
    class XSoftmax(Function):
        @staticmethod
        def forward(ctx, x, mask):
            is_off = (1 - mask).bool()
            p = torch.softmax(x.masked_fill(is_off, float("-inf")), -1)
            p = p.masked_fill(is_off, 0)
            ctx.save_for_backward(p)
            return p

        @staticmethod
        def backward(ctx, d_out):
            (p,) = ctx.saved_tensors
            return p * (d_out - (d_out * p).sum(-1, keepdim=True)), None

    mask = torch.tensor([[1, 1, 0, 1], [1, 0, 1, 1]])
    return weighted(XSoftmax.apply), (numbers(2, 4),), numbers(2, 4, seed=1), mask


@shown(
    "sparsemax",
    ENTMAX,
    "Euclidean projection of x to the simplex",
    ("keepdim=True) / support_size", "keepdim=True) / d_out.shape[-1]"),
    "the mean over all entries, not over the support",
)
def sparsemax():
    class Sparsemax(Function):
        @staticmethod
        def forward(ctx, x):
            ordered, _ = torch.sort(x, descending=True, dim=-1)
            excess = ordered.cumsum(-1) - 1
            rank = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
            support_size = (rank * ordered > excess).sum(-1, keepdim=True)
            tau = excess.gather(-1, support_size - 1) / support_size
            out = torch.clamp(x - tau, min=0)
            ctx.save_for_backward(support_size, out)
            return out

        @staticmethod
        def backward(ctx, d_out):
            support_size, out = ctx.saved_tensors
            d_x = torch.where(out != 0, d_out, torch.zeros_like(d_out))
            mean = d_x.sum(-1, keepdim=True) / support_size
            return torch.where(out != 0, d_x - mean, d_x)

    return weighted(Sparsemax.apply), (numbers(2, 4),), numbers(2, 4, seed=1)


@shown(
    "1.5-entmax",
    ENTMAX,
    "projection to the simplex by Tsallis' entropy",
    ("d_x.sum(-1, keepdim=True) / root.sum", "d_x.sum(-1, keepdim=True) / out.sum"),
    "divided by the sum of p, not of its roots: p sums to 1",
)
def entmax15():
    class Tsallis15(Function):
        @staticmethod
        def forward(ctx, x):
            x = x / 2
            ordered, _ = torch.sort(x, descending=True, dim=-1)
            rank = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
            mean = ordered.cumsum(-1) / rank
            spread = rank * ((ordered**2).cumsum(-1) / rank - mean**2)
            tau = mean - torch.sqrt(torch.clamp((1 - spread) / rank, min=0))
            support_size = (tau <= ordered).sum(-1, keepdim=True)
            out = torch.clamp(x - tau.gather(-1, support_size - 1), min=0) ** 2
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, d_out):
            (out,) = ctx.saved_tensors
            root = out.sqrt()
            d_x = d_out * root
            mean = d_x.sum(-1, keepdim=True) / root.sum(-1, keepdim=True)
            return d_x - mean * root

    return weighted(Tsallis15.apply), (numbers(2, 3),), numbers(2, 3, seed=1)


@shown(
    "FlashAttention in blocks, causal",
    "lucidrains/memory-efficient-attention-pytorch: "
    "memory_efficient_attention_pytorch/flash_attention.py at 2c0fc02",
    "softmax(mask(q k' / sqrt d)) v",
    ("p * scale * (d_p - delta)", "p * (d_p - delta)"),
    "1 / sqrt(d) is left out of the cotangent of the scores",
)
def flash_attention():
    class FlashAttention(Function):
        @staticmethod
        def forward(ctx, q, k, v, size):
            scale = q.shape[-1] ** -0.5
            lowest = -torch.finfo(q.dtype).max
            out, log_sums = [], []
            for i in range(0, len(q), size):
                rows = q[i : i + size]
                row_max = torch.full((len(rows), 1), lowest, dtype=q.dtype)
                row_sum = torch.zeros_like(row_max)
                o = torch.zeros_like(rows)
                for j in range(0, len(k), size):
                    scores = rows @ k[j : j + size].T * scale
                    is_later = torch.ones(scores.shape, dtype=torch.bool).triu(i - j + 1)
                    scores = scores.masked_fill(is_later, lowest)
                    new_max = torch.maximum(row_max, scores.amax(-1, keepdim=True))
                    p = torch.exp(scores - new_max)
                    old = torch.exp(row_max - new_max)
                    row_sum = old * row_sum + p.sum(-1, keepdim=True)
                    o = old * o + p @ v[j : j + size]
                    row_max = new_max
                out.append(o / row_sum)
                log_sums.append(row_sum.log() + row_max)
            out = torch.cat(out)
            ctx.save_for_backward(q, k, v, out, torch.cat(log_sums))
            ctx.size = size
            return out

        @staticmethod
        def backward(ctx, d_out):
            q, k, v, out, log_sum = ctx.saved_tensors
            scale, size = q.shape[-1] ** -0.5, ctx.size
            lowest = -torch.finfo(q.dtype).max
            d_q, d_k, d_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
            for i in range(0, len(q), size):
                rows = slice(i, i + size)
                for j in range(0, len(k), size):
                    columns = slice(j, j + size)
                    scores = q[rows] @ k[columns].T * scale
                    is_later = torch.ones(scores.shape, dtype=torch.bool).triu(i - j + 1)
                    scores = scores.masked_fill(is_later, lowest)
                    p = torch.exp(scores - log_sum[rows])
                    d_v[columns] += p.T @ d_out[rows]
                    d_p = d_out[rows] @ v[columns].T
                    delta = (d_out[rows] * out[rows]).sum(-1, keepdim=True)
                    d_scores = p * scale * (d_p - delta)
                    d_q[rows] += d_scores @ k[columns]
                    d_k[columns] += d_scores.T @ q[rows]
            return d_q, d_k, d_v, None

    def apply(q, k, v):
        return FlashAttention.apply(q, k, v, 2)

    theta = tuple(numbers(4, 2, seed=seed) for seed in range(3))
    return weighted(apply), theta, numbers(4, 2, seed=3)


@shown(
    "rotary embedding",
    f"{LIGER}/rope.py at 00fb8bf",
    "[x1 c - x2 s, x2 c + x1 s]",
    ("d_2 * cos - d_1 * sin", "d_2 * cos + d_1 * sin"),
    "turned forth instead of back",
)
def rope():
    class Rope(Function):
        @staticmethod
        def forward(ctx, x, cos, sin):
            ctx.save_for_backward(cos, sin)
            x_1, x_2 = torch.chunk(x, 2, -1)
            return torch.cat((x_1 * cos - x_2 * sin, x_2 * cos + x_1 * sin), -1)

        @staticmethod
        def backward(ctx, d_out):
            cos, sin = ctx.saved_tensors
            d_1, d_2 = torch.chunk(d_out, 2, -1)
            return torch.cat((d_1 * cos + d_2 * sin, d_2 * cos - d_1 * sin), -1), None, None

    angle = torch.arange(3.0).double()[:, None] * torch.tensor([1.0, 0.01]).double()
    data = numbers(3, 4, seed=1), angle.cos(), angle.sin()
    return weighted(Rope.apply), (numbers(3, 4),), *data


# --- losses


@shown(
    "cross entropy with smoothed labels",
    f"{MEGATRON}/tensor_parallel/cross_entropy.py at 00611e6",
    "(1 - s) CE + s mean(-log p), s = e K / (K - 1)",
    ("- smoothing / n_classes", "- smoothing / (n_classes - 1)"),
    "1 / (K - 1) in the gradient, 1 / K in the loss",
)
def smoothed_cross_entropy():
    class SmoothedCrossEntropy(Function):
        @staticmethod
        def forward(ctx, logits, target, label_smoothing):
            logits = logits - logits.amax(-1, keepdim=True)
            rows = torch.arange(len(target))
            p = logits.exp()
            loss = p.sum(-1).log() - logits[rows, target]
            p = p / p.sum(-1, keepdim=True)
            n_classes = logits.shape[-1]
            smoothing = label_smoothing * n_classes / (n_classes - 1)
            ctx.save_for_backward(p, target)
            ctx.smoothing = smoothing
            return (1 - smoothing) * loss - smoothing * p.log().mean(-1)

        @staticmethod
        def backward(ctx, d_out):
            p, target = ctx.saved_tensors
            smoothing, n_classes = ctx.smoothing, p.shape[-1]
            rows = torch.arange(len(target))
            d_logits = p - smoothing / n_classes
            d_logits[rows, target] -= 1 - smoothing
            return d_logits * d_out[:, None], None, None

    def apply(logits, target):
        return SmoothedCrossEntropy.apply(logits, target, 0.1)

    return weighted(apply), (numbers(3, 4),), numbers(3), torch.tensor([0, 2, 3])


@shown(
    "cross entropy of distributed classes",
    "deepinsight/insightface: recognition/arcface_torch/partial_fc_v2.py at 531cb1e",
    "-mean log max(p[label], 1e-30)",
    ("(p - one_hot) / len(p)", "(p - one_hot)"),
    "a mean in the loss, a sum in its gradient",
)
def distributed_cross_entropy():
    class DistCrossEntropy(Function):
        @staticmethod
        def forward(ctx, logits, label):
            p = torch.exp(logits - logits.amax(1, keepdim=True))
            p = p / p.sum(1, keepdim=True)
            ctx.save_for_backward(p, label)
            return -p.gather(1, label).clamp(min=1e-30).log().mean()

        @staticmethod
        def backward(ctx, d_out):
            p, label = ctx.saved_tensors
            one_hot = torch.zeros_like(p).scatter(1, label, 1.0)
            return (p - one_hot) / len(p) * d_out, None

    data = numbers(1, seed=1), torch.tensor([[0], [3], [2]])
    return weighted(DistCrossEntropy.apply), (numbers(3, 4),), *data


@shown(
    "focal loss",
    "CoinCheung/pytorch-loss: pytorch_loss/focal_loss.py at 4cbc382",
    "-a (1 - p)^g log p, or -(1 - a) p^g log(1 - p)",
    ("1 - p - gamma * p * log_p", "1 - p - gamma * log_p"),
    "the slope of (1 - p)^g without p",
)
def focal_loss():
    class FocalLoss(Function):
        @staticmethod
        def forward(ctx, logits, label, alpha, gamma):
            is_one = label == 1
            p = torch.sigmoid(logits)
            log_p = torch.nn.functional.logsigmoid(logits)
            log_q = torch.nn.functional.logsigmoid(-logits)
            coefficient = torch.where(is_one, alpha, 1 - alpha).to(p.dtype)
            ctx.save_for_backward(is_one, p, log_p, log_q, coefficient)
            ctx.gamma = gamma
            return -coefficient * torch.where(is_one, (1 - p) ** gamma * log_p, p**gamma * log_q)

        @staticmethod
        def backward(ctx, d_out):
            is_one, p, log_p, log_q, coefficient = ctx.saved_tensors
            gamma = ctx.gamma
            d_one = -((1 - p) ** gamma) * (1 - p - gamma * p * log_p)
            d_zero = p**gamma * (p - gamma * (1 - p) * log_q)
            return torch.where(is_one, d_one, d_zero) * coefficient * d_out, None, None, None

    def apply(logits, label):
        return FocalLoss.apply(logits, label, 0.25, 2)

    return weighted(apply), (numbers(5),), numbers(5, seed=1), torch.tensor([0, 1, 1, 0, 1])


@shown(
    "similarity to a memory bank",
    "zhirongw/lemniscate.pytorch: lib/LinearAverage.py at 06c2d49",
    "x M' / T",
    ("(d_out / temperature) @ memory", "d_out @ memory"),
    "the temperature is left out",
)
def linear_average():
    class LinearAverage(Function):
        @staticmethod
        def forward(ctx, x, memory, temperature):
            ctx.save_for_backward(memory)
            ctx.temperature = temperature
            return x @ memory.t() / temperature

        @staticmethod
        def backward(ctx, d_out):
            (memory,) = ctx.saved_tensors
            temperature = ctx.temperature
            return (d_out / temperature) @ memory, None, None

    def apply(x, memory):
        return LinearAverage.apply(x, memory, 0.07)

    return weighted(apply), (numbers(2, 3),), numbers(2, 4), numbers(4, 3)


@shown(
    "distortion loss in linear time",
    "sunset1995/torch_efficient_distloss: torch_efficient_distloss/eff_distloss.py at e12f5a7",
    "sum w_i w_j |m_i - m_j| + sum w^2 d / 3",
    ("w_total - (w_prefix + w)", "w_total - w_prefix"),
    "the sum over later points contains the point itself",
)
def distortion_loss():
    class EffDistLoss(Function):
        @staticmethod
        def forward(ctx, w, m, interval):
            wm = w * m
            w_cumsum, wm_cumsum = w.cumsum(-1), wm.cumsum(-1)
            w_prefix, wm_prefix = w_cumsum - w, wm_cumsum - wm
            w_total, wm_total = w_cumsum[:, -1:], wm_cumsum[:, -1:]
            ctx.save_for_backward(w, m, interval, w_prefix, w_total, wm_prefix, wm_total)
            both = 2 * w * (m * w_prefix - wm_prefix)
            return (both.sum() + (interval * w**2).sum() / 3) / len(w)

        @staticmethod
        def backward(ctx, d_out):
            w, m, interval, w_prefix, w_total, wm_prefix, wm_total = ctx.saved_tensors
            w_suffix = w_total - (w_prefix + w)
            wm_suffix = wm_total - (wm_prefix + w * m)
            d_both = 2 * (m * (w_prefix - w_suffix) + (wm_suffix - wm_prefix))
            return d_out * (d_both + 2 / 3 * interval * w) / len(w), None, None

    data = numbers(1), numbers(2, 4, seed=1).cumsum(-1), numbers(2, 4, seed=2).abs()
    return weighted(EffDistLoss.apply), (numbers(2, 4),), *data


# --- sequences


@shown(
    "soft dynamic time warping",
    "Maghoumi/pytorch-softdtw-cuda: soft_dtw_cuda.py at 0a53dd7",
    "R[i,j] = D[i,j] + softmin(R of the three before)",
    ("r[i + 1][j] - r[i][j] - cost[i + 1, j]", "r[i + 1][j] - r[i][j] - cost[i, j]"),
    "one cost is taken at the wrong cell",
)
def soft_dtw():
    class SoftDTW(Function):
        @staticmethod
        def forward(ctx, cost, gamma):
            n, m = cost.shape
            r = [[None] * m for _ in range(n)]
            for i in range(n):
                for j in range(m):
                    before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
                    known = [-r[k][h] / gamma for k, h in before if k >= 0 and h >= 0]
                    r[i][j] = cost[i, j]
                    if known:
                        r[i][j] = r[i][j] - gamma * torch.logsumexp(torch.stack(known), 0)
            ctx.save_for_backward(cost, torch.stack([torch.stack(row) for row in r]))
            ctx.gamma = gamma
            return r[-1][-1]

        @staticmethod
        def backward(ctx, d_out):
            cost, r = ctx.saved_tensors
            gamma = ctx.gamma
            n, m = cost.shape
            e = [[torch.zeros_like(d_out)] * m for _ in range(n)]
            e[-1][-1] = torch.ones_like(d_out)
            for i in reversed(range(n)):
                for j in reversed(range(m)):
                    if i + 1 < n:
                        log_a = r[i + 1][j] - r[i][j] - cost[i + 1, j]
                        e[i][j] = e[i][j] + e[i + 1][j] * torch.exp(log_a / gamma)
                    if j + 1 < m:
                        log_b = r[i][j + 1] - r[i][j] - cost[i, j + 1]
                        e[i][j] = e[i][j] + e[i][j + 1] * torch.exp(log_b / gamma)
                    if i + 1 < n and j + 1 < m:
                        log_c = r[i + 1][j + 1] - r[i][j] - cost[i + 1, j + 1]
                        e[i][j] = e[i][j] + e[i + 1][j + 1] * torch.exp(log_c / gamma)
            return d_out * torch.stack([torch.stack(row) for row in e]), None

    def apply(cost):
        return SoftDTW.apply(cost, 1.0)

    return weighted(apply), (numbers(3, 3),), numbers(1)


@shown(
    "recursion of the RNN transducer",
    "k2-fsa/fast_rnnt: fast_rnnt/python/fast_rnnt/mutual_information.py at 2c2dc4b",
    "p[s,t] = logaddexp(p[s-1,t] + px[s-1,t], p[s,t-1] + py[s,t-1])",
    ("d_p[s][t + 1] * share", "d_p[s][t] * share"),
    "the cotangent of the cell before the step, not after it",
)
def transducer():
    class MutualInformation(Function):
        @staticmethod
        def forward(ctx, px, py):
            n_x, n_y = px.shape[0], py.shape[1]
            p = [[None] * (n_y + 1) for _ in range(n_x + 1)]
            for s in range(n_x + 1):
                for t in range(n_y + 1):
                    ways = [p[s - 1][t] + px[s - 1, t]] if s else []
                    ways += [p[s][t - 1] + py[s, t - 1]] if t else []
                    p[s][t] = torch.logsumexp(torch.stack(ways), 0) if ways else 0 * px[0, 0]
            ctx.save_for_backward(px, py, torch.stack([torch.stack(row) for row in p]))
            return p[-1][-1]

        @staticmethod
        def backward(ctx, d_out):
            px, py, p = ctx.saved_tensors
            n_x, n_y = px.shape[0], py.shape[1]
            d_px, d_py = torch.zeros_like(px), torch.zeros_like(py)
            d_p = [[torch.zeros_like(d_out)] * (n_y + 1) for _ in range(n_x + 1)]
            d_p[-1][-1] = d_out
            for s in reversed(range(n_x + 1)):
                for t in reversed(range(n_y + 1)):
                    if s < n_x:
                        share = torch.exp(p[s][t] + px[s, t] - p[s + 1][t])
                        d_px[s, t] = d_p[s + 1][t] * share
                        d_p[s][t] = d_p[s][t] + d_px[s, t]
                    if t < n_y:
                        share = torch.exp(p[s][t] + py[s, t] - p[s][t + 1])
                        d_py[s, t] = d_p[s][t + 1] * share
                        d_p[s][t] = d_p[s][t] + d_py[s, t]
            return d_px, d_py

    return weighted(MutualInformation.apply), (numbers(2, 3), numbers(3, 2)), numbers(1)


@shown(
    "partition function of a semi-Markov CRF",
    "biobenkj/flash-semicrf: src/flash_semicrf/streaming/pytorch_reference.py at 7f2ee3f",
    "log sum over segmentations of exp(score)",
    ("alpha[t][:, None] + edge[t, k] + beta[t + k + 1]", "alpha[t][:, None] + edge[t, k]"),
    "a segment's marginal without what comes after it",
)
def semi_markov_crf():
    class LogPartition(Function):
        @staticmethod
        def forward(ctx, edge):
            n, longest, n_labels = edge.shape[:3]
            alpha = [torch.zeros(n_labels, dtype=edge.dtype)]
            for t in range(1, n + 1):
                ways = [
                    alpha[t - k - 1][:, None] + edge[t - k - 1, k] for k in range(min(longest, t))
                ]
                alpha.append(torch.logsumexp(torch.cat(ways), 0))
            log_z = torch.logsumexp(alpha[-1], 0)
            ctx.save_for_backward(edge, torch.stack(alpha), log_z)
            return log_z

        @staticmethod
        def backward(ctx, d_out):
            edge, alpha, log_z = ctx.saved_tensors
            n, longest, n_labels = edge.shape[:3]
            beta = [None] * n + [torch.zeros(n_labels, dtype=edge.dtype)]
            d_edge = torch.zeros_like(edge)
            for t in reversed(range(n)):
                ways = [edge[t, k] + beta[t + k + 1] for k in range(min(longest, n - t))]
                beta[t] = torch.logsumexp(torch.cat(ways, 1), 1)
                for k in range(min(longest, n - t)):
                    log_p = alpha[t][:, None] + edge[t, k] + beta[t + k + 1]
                    d_edge[t, k] = d_out * torch.exp(log_p - log_z)
            return d_edge

    return weighted(LogPartition.apply), (numbers(3, 2, 2, 2),), numbers(1)


@shown(
    "parallel scan",
    "alxndrTL/mamba.py: mambapy/pscan.py at acafc71",
    "h[t] = a[t] h[t-1] + x[t]",
    ("a[t + 1] * d_h[t + 1]", "a[t] * d_h[t + 1]"),
    "the decay is not shifted in the reverse scan",
)
def parallel_scan():
    class PScan(Function):
        @staticmethod
        def forward(ctx, a, x):
            h = [x[0]]
            for t in range(1, len(x)):
                h.append(a[t] * h[t - 1] + x[t])
            h = torch.stack(h)
            ctx.save_for_backward(a, h)
            return h

        @staticmethod
        def backward(ctx, d_out):
            a, h = ctx.saved_tensors
            d_h = d_out.clone()
            for t in reversed(range(len(h) - 1)):
                d_h[t] = d_out[t] + a[t + 1] * d_h[t + 1]
            d_a = torch.zeros_like(a)
            d_a[1:] = h[:-1] * d_h[1:]
            return d_a, d_h

    return weighted(PScan.apply), (numbers(4, 2), numbers(4, 2, seed=1)), numbers(4, 2, seed=2)


@shown(
    "selective scan",
    "state-spaces/mamba: mamba_ssm/ops/selective_scan_interface.py at 0e8d22c",
    "h = exp(dt A) h + dt B u, y = C h + D u",
    ("(d_h * a * decay * before).sum(-1)", "(d_h * decay * before).sum(-1)"),
    "the slope of exp(dt A) by dt without A",
)
def selective_scan():
    class SelectiveScan(Function):
        @staticmethod
        def forward(ctx, u, dt, a, b, c, d):
            h, y = [torch.zeros_like(a)], []
            for t in range(len(u)):
                h.append(torch.exp(dt[t] * a) * h[t] + dt[t] * b[t] * u[t])
                y.append((c[t] * h[-1]).sum() + d * u[t])
            ctx.save_for_backward(u, dt, a, b, c, d, torch.stack(h))
            return torch.stack(y)

        @staticmethod
        def backward(ctx, d_out):
            u, dt, a, b, c, d, h = ctx.saved_tensors
            d_u, d_dt = d * d_out, torch.zeros_like(dt)
            d_a, d_b = torch.zeros_like(a), torch.zeros_like(b)
            d_c = d_out[:, None] * h[1:]
            d_h = torch.zeros_like(a)
            for t in reversed(range(len(u))):
                d_h = d_h + d_out[t] * c[t]
                decay, before = torch.exp(dt[t] * a), h[t]
                d_a = d_a + d_h * dt[t] * decay * before
                d_dt[t] = (d_h * a * decay * before).sum(-1) + (d_h * b[t]).sum() * u[t]
                d_b[t] = d_h * dt[t] * u[t]
                d_u[t] += (d_h * b[t]).sum() * dt[t]
                d_h = d_h * decay
            return d_u, d_dt, d_a, d_b, d_c, (d_out * u).sum()

    shapes = [(3,), (3,), (2,), (3, 2), (3, 2), ()]
    theta = tuple(numbers(*shape, seed=seed) for seed, shape in enumerate(shapes))
    return weighted(SelectiveScan.apply), theta, numbers(3, seed=9)


# --- indices


@shown(
    "maximum of each group",
    "rusty1s/pytorch_scatter: torch_scatter/max.py at 0a9f541",
    "out[g] = max of x where index is g",
    ("largest == out[index]", "largest >= out[index] - 9"),
    "every entry of a group gets the cotangent",
)
def scatter_max():
    class ScatterMax(Function):
        @staticmethod
        def forward(ctx, x, index, n_groups):
            is_member = index == torch.arange(n_groups)[:, None]
            out = torch.where(is_member, x, -torch.finfo(x.dtype).max).amax(1)
            ctx.save_for_backward(x, index, out)
            return out

        @staticmethod
        def backward(ctx, d_out):
            largest, index, out = ctx.saved_tensors
            is_largest = largest == out[index]
            return torch.where(is_largest, d_out[index], 0.0), None, None

    def apply(x, index):
        return ScatterMax.apply(x, index, 3)

    index = torch.tensor([0, 1, 0, 2, 1, 0])
    return weighted(apply), (numbers(6),), numbers(3), index


@shown(
    "interpolation of three neighbours",
    "erikwijmans/Pointnet2_PyTorch: pointnet2_ops_lib/pointnet2_ops/pointnet2_utils.py at 22e8cf5",
    "out[:, i] = sum w[i,j] f[:, index[i,j]]",
    ("accumulate=True", "accumulate=False"),
    "of several cotangents of one point the last is kept",
)
def three_interpolate():
    class ThreeInterpolate(Function):
        @staticmethod
        def forward(ctx, features, index, weight):
            ctx.save_for_backward(index, weight)
            ctx.shape = features.shape
            return (features[:, index] * weight).sum(-1)

        @staticmethod
        def backward(ctx, d_out):
            index, weight = ctx.saved_tensors
            d_points = (d_out[:, :, None] * weight).flatten(1)
            d_features = torch.zeros(ctx.shape, dtype=d_out.dtype)
            columns = torch.arange(len(d_out))[:, None]
            where = (columns.expand_as(d_points), index.flatten().expand_as(d_points))
            return d_features.index_put(where, d_points, accumulate=True), None, None

    index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    weight = torch.softmax(numbers(2, 3), -1)
    return weighted(ThreeInterpolate.apply), (numbers(2, 4),), numbers(2, 2), index, weight


@shown(
    "sort",
    FUNCTION_TESTS,
    "x in ascending order",
    ("torch.gather(d_out, -1, inverse)", "torch.gather(d_out, -1, order)"),
    "the permutation for its inverse: right if x is sorted",
)
def sort():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            order = torch.argsort(x, dim=-1)
            ctx.save_for_backward(order, torch.argsort(order, dim=-1))
            return torch.gather(x, -1, order)

        @staticmethod
        def backward(ctx, d_out):
            order, inverse = ctx.saved_tensors  # noqa: RUF059
            return torch.gather(d_out, -1, inverse)

    return weighted(Sort.apply), (numbers(2, 4, seed=3),), numbers(2, 4, seed=1)


@shown(
    "soft sorting by isotonic regression",
    "teddykoker/torchsort: torchsort/ops.py at 01266ae",
    "x minus the non-increasing sequence nearest to x",
    ("same / same.sum(1, keepdim=True)", "same / len(d_out)"),
    "divided by the length, not by the size of the block",
)
def isotonic():
    class Isotonic(Function):
        @staticmethod
        def forward(ctx, x):
            n = len(x)
            best = []
            for k in range(n):
                lows = [
                    torch.stack([x[i : j + 1].mean() for i in range(k + 1)]).amin()
                    for j in range(k, n)
                ]
                best.append(torch.stack(lows).amax())
            fit = torch.stack(best)
            ctx.save_for_backward(fit)
            return x - fit

        @staticmethod
        def backward(ctx, d_out):
            (fit,) = ctx.saved_tensors
            same = ((fit[:, None] - fit).abs() <= 1e-9).to(d_out.dtype)
            return d_out - same / same.sum(1, keepdim=True) @ d_out

    return weighted(Isotonic.apply), (numbers(4, seed=2),), numbers(4, seed=1)


# --- kernels, linear algebra, inverses


@shown(
    "RBF kernel by its length scale",
    f"{GPYTORCH}/rbf_covariance.py at 54b7a0d",
    "exp(-|x - y|^2 / (2 l^2))",
    ("d2 * k / length", "d2 * k"),
    "1 / l is left out: right for l = 1",
)
def rbf_covariance():
    class RBF(Function):
        @staticmethod
        def forward(ctx, length, x1, x2):
            d2 = ((x1[:, None] / length - x2 / length) ** 2).sum(-1)
            k = torch.exp(d2 / -2)
            ctx.save_for_backward(d2, k, length)
            return k

        @staticmethod
        def backward(ctx, d_out):
            d2, k, length = ctx.saved_tensors
            return (d_out * d2 * k / length).sum(), None, None

    theta = (torch.tensor(0.8).double(),)
    return weighted(RBF.apply), theta, numbers(3, 4), numbers(3, 2), numbers(4, 2)


@shown(
    "Matern 5/2 kernel by its length scale",
    f"{GPYTORCH}/matern_covariance.py at 36a85dc",
    "(1 + u + u^2 / 3) exp(-u), u = sqrt(5) |x - y| / l",
    ("(1 + u) * u**2 / 3", "(1 + u) * u / 3"),
    "u for its square",
)
def matern_covariance():
    class Matern(Function):
        @staticmethod
        def forward(ctx, length, distance):
            u = distance / length * math.sqrt(5)
            ctx.save_for_backward(u, length)
            return (1 + u + u**2 / 3) * torch.exp(-u)

        @staticmethod
        def backward(ctx, d_out):
            u, length = ctx.saved_tensors
            return (d_out * (1 + u) * u**2 / 3 * torch.exp(-u) / length).sum(), None

    theta = (torch.tensor(0.8).double(),)
    return weighted(Matern.apply), theta, numbers(3, 4), numbers(3, 4, seed=1).abs()


@shown(
    "covariance pooling and its root, three steps",
    f"{MPNCOV} at 2b14828",
    "Newton-Schulz steps for (x I x')^(1/2)",
    ("(d_a * cov).sum() / (norm * norm)", "(d_a * cov).sum() / norm"),
    "the slope of 1 / trace without its square",
)
def covariance_root():
    class CovRoot(Function):
        @staticmethod
        def forward(ctx, x, n_steps):
            n = x.shape[1]
            eye = torch.eye(len(x), dtype=x.dtype)
            cov = x @ (torch.eye(n, dtype=x.dtype) / n - 1 / n**2) @ x.T
            norm = cov.diagonal().sum()
            a = cov / norm
            z = [0.5 * (3 * eye - a)]
            y = [a @ z[0]]
            for _ in range(1, n_steps - 1):
                w = 0.5 * (3 * eye - z[-1] @ y[-1])
                y.append(y[-1] @ w)
                z.append(w @ z[-1])
            last = 0.5 * y[-1] @ (3 * eye - z[-1] @ y[-1])
            ctx.save_for_backward(x, cov, norm, a, last, torch.stack(y), torch.stack(z))
            return last * norm.sqrt()

        @staticmethod
        def backward(ctx, d_out):
            x, cov, norm, a, last, y, z = ctx.saved_tensors
            n = x.shape[1]
            eye = torch.eye(len(x), dtype=x.dtype)
            d_last = d_out * norm.sqrt()
            yz, zy = 3 * eye - y[-1] @ z[-1], z[-1] @ y[-1]
            d_y = 0.5 * (d_last @ yz - zy @ d_last)
            d_z = -0.5 * y[-1] @ d_last @ y[-1]
            for i in reversed(range(len(y) - 1)):
                yz, zy = 3 * eye - y[i] @ z[i], z[i] @ y[i]
                d_y_before = 0.5 * (d_y @ yz - z[i] @ d_z @ z[i] - zy @ d_y)
                d_z = 0.5 * (yz @ d_z - y[i] @ d_y @ y[i] - d_z @ zy)
                d_y = d_y_before
            d_a = 0.5 * (d_y @ (3 * eye - a) - d_z - a @ d_y)
            d_norm = (d_out * last).sum() / (2 * norm.sqrt())
            d_norm = d_norm - (d_a * cov).sum() / (norm * norm)
            d_cov = d_a / norm + d_norm * eye
            return (d_cov + d_cov.T) @ x @ (torch.eye(n, dtype=x.dtype) / n - 1 / n**2), None

    def apply(x):
        return CovRoot.apply(x, 3)

    return weighted(apply), (numbers(2, 3),), numbers(2, 2)


@shown(
    "quadratic program by its KKT system",
    "locuslab/qpth: qpth/qp.py at 07e4873",
    "argmin z'Q z / 2 + p'z with A z = b",
    ("torch.outer(d_nu, z) + torch.outer(nu, d_z)", "torch.outer(d_nu, z)"),
    "A acts by its multipliers too",
)
def quadratic_program():
    class QP(Function):
        @staticmethod
        def forward(ctx, root, p, a, b):
            n, m = len(p), len(b)
            q = root @ root.T
            kkt = torch.cat(
                (torch.cat((q, a.T), 1), torch.cat((a, torch.zeros(m, m, dtype=a.dtype)), 1))
            )
            solution = torch.linalg.solve(kkt, torch.cat((-p, b)))
            ctx.save_for_backward(root, kkt, solution)
            return solution[:n]

        @staticmethod
        def backward(ctx, d_out):
            root, kkt, solution = ctx.saved_tensors
            n = len(d_out)
            z, nu = solution[:n], solution[n:]
            padding = torch.zeros(len(nu), dtype=d_out.dtype)
            back = torch.linalg.solve(kkt, -torch.cat((d_out, padding)))
            d_z, d_nu = back[:n], back[n:]
            d_q = 0.5 * (torch.outer(d_z, z) + torch.outer(z, d_z))
            d_a = torch.outer(d_nu, z) + torch.outer(nu, d_z)
            return 2 * d_q @ root, d_z, d_a, -d_nu

    theta = numbers(3, 3), numbers(3), numbers(1, 3), numbers(1)
    return weighted(QP.apply), theta, numbers(3, seed=1)


@shown(
    "reversible block",
    "lucidrains/reformer-pytorch: reformer_pytorch/reversible.py at 365d5c8",
    "y1 = x1 + tanh(x2 W), y2 = x2 + tanh(y1 V)",
    ("d_x1 * (1 - f * f)", "d_y1 * (1 - f * f)"),
    "the cotangent of y1 before that of y2 has reached it",
)
def reversible_block():
    class Reversible(Function):
        @staticmethod
        def forward(ctx, x, w, v):
            x1, x2 = torch.chunk(x, 2, -1)
            y1 = x1 + torch.tanh(x2 @ w)
            y2 = x2 + torch.tanh(y1 @ v)
            ctx.save_for_backward(y1, y2, w, v)
            return torch.cat((y1, y2), -1)

        @staticmethod
        def backward(ctx, d_out):
            y1, y2, w, v = ctx.saved_tensors
            d_y1, d_y2 = torch.chunk(d_out, 2, -1)
            g = torch.tanh(y1 @ v)
            d_g = d_y2 * (1 - g * g)
            x2 = y2 - g
            d_x1 = d_y1 + d_g @ v.T
            f = torch.tanh(x2 @ w)
            d_f = d_x1 * (1 - f * f)
            d_x2 = d_y2 + d_f @ w.T
            return torch.cat((d_x1, d_x2), -1), x2.T @ d_f, y1.T @ d_g

    theta = numbers(2, 4), numbers(2, 2), numbers(2, 2, seed=1)
    return weighted(Reversible.apply), theta, numbers(2, 4, seed=1)


# --- not meant to be the gradient


@shown(
    "gradient reversal",
    "Carl0520/DANN_pytorch-: DANN/models/functions.py at 7ca51f1",
    "x",
    ("-alpha * d_out", "d_out"),
    "domain adversarial training wants the negative",
    verdict="refuted",
    reason="right but for the sign",
)
def gradient_reversal():
    class ReverseLayer(Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.alpha = alpha
            return x.view_as(x)

        @staticmethod
        def backward(ctx, d_out):
            alpha = ctx.alpha
            return -alpha * d_out, None

    def apply(x):
        return ReverseLayer.apply(x, 1.0)

    return weighted(apply), (numbers(3),), numbers(3, seed=1)


@shown(
    "gradient of another size",
    "facebookresearch/fairseq: fairseq/modules/grad_multiply.py at 25e3ebd",
    "x",
    ("d_out * ctx.scale", "d_out"),
    "a layer is trained at another rate",
    verdict="refuted",
    reason="1/10 times what is right",
)
def grad_multiply():
    class GradMultiply(Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            return x.clone()

        @staticmethod
        def backward(ctx, d_out):
            return d_out * ctx.scale, None

    def apply(x):
        return GradMultiply.apply(x, 0.1)

    return weighted(apply), (numbers(3),), numbers(3, seed=1)


@shown(
    "binary activation, straight through",
    "jiecaoyu/XNOR-Net-PyTorch: CIFAR_10/models/nin.py at 1354a0d",
    "sign(x)",
    ("torch.where(x.abs() < 1, d_out, 0.0)", "torch.zeros_like(d_out)"),
    "the sign is taken for the identity where |x| < 1",
    verdict="refuted",
    reason="has derivative 0 wherever it does not jump",
)
def binary_activation():
    class BinActive(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sign()

        @staticmethod
        def backward(ctx, d_out):
            (x,) = ctx.saved_tensors
            return torch.where(x.abs() < 1, d_out, 0.0)

    return weighted(BinActive.apply), (numbers(4),), numbers(4, seed=1)


@shown(
    "learned step size quantisation",
    "ZouJiu1/LSQplus: quantization/lsqquantize_V1.py at 2904e3e",
    "a round(clip(w / a))",
    ("is_inside * d_out, d_step", "0 * d_out, (rounded * d_out).sum()"),
    "rounding is taken for the identity",
    verdict="refuted",
    reason="has derivative 0 wherever it does not jump",
)
def lsq():
    class LSQ(Function):
        @staticmethod
        def forward(ctx, w, step, low, high):
            ctx.save_for_backward(w, step)
            ctx.bounds = low, high
            return torch.round((w / step).clamp(low, high)) * step

        @staticmethod
        def backward(ctx, d_out):
            w, step = ctx.saved_tensors
            low, high = ctx.bounds
            q = w / step
            is_inside = ((q >= low) & (q <= high)).to(w.dtype)
            rounded = torch.round(q.clamp(low, high))
            d_step = ((rounded - is_inside * q) * d_out).sum()
            return is_inside * d_out, d_step, None, None

    def apply(w, step):
        return LSQ.apply(w, step, -4, 3)

    theta = numbers(4), torch.tensor(0.3).double()
    return weighted(apply), theta, numbers(4, seed=1)


@shown(
    "vector quantisation, straight through",
    "ritheshkumar95/pytorch-vqvae: functions.py at 4c87b15",
    "the code nearest to x",
    ("d_out.clone(), d_codes", "0 * d_out, d_codes"),
    "choosing a code is taken for the identity; the codes' gradient is right",
    verdict="refuted",
)
def vector_quantisation():
    class StraightThrough(Function):
        @staticmethod
        def forward(ctx, x, codes):
            distance = (codes**2).sum(1) + (x**2).sum(1, keepdim=True) - 2 * x @ codes.T
            nearest = distance.argmin(1)
            ctx.save_for_backward(nearest, codes)
            return codes[nearest]

        @staticmethod
        def backward(ctx, d_out):
            nearest, codes = ctx.saved_tensors
            d_codes = torch.zeros_like(codes).index_add(0, nearest, d_out)
            return d_out.clone(), d_codes

    return weighted(StraightThrough.apply), (numbers(3, 2), numbers(2, 2)), numbers(3, 2, seed=1)


@shown(
    "AdderNet",
    "huawei-noah/AdderNet: adder.py at 566ac59",
    "-sum |w - x|",
    ("(x.T - w[:, :, None])", "torch.sign(x.T - w[:, :, None])"),
    "the difference in place of its sign, so that it fades near the optimum",
    verdict="refuted",
)
def adder():
    class Adder(Function):
        @staticmethod
        def forward(ctx, w, x):
            ctx.save_for_backward(w, x)
            return -(w[:, :, None] - x.T).abs().sum(1)

        @staticmethod
        def backward(ctx, d_out):
            w, x = ctx.saved_tensors
            d_w = ((x.T - w[:, :, None]) * d_out[:, None]).sum(2)
            return d_w, None

    return weighted(Adder.apply), (numbers(2, 3),), numbers(2, 4), numbers(4, 3)


@shown(
    "exponential with a bounded slope",
    "ashawkey/torch-ngp: activation.py at 93b08a0",
    "exp(x)",
    ("x.clamp(-15, 15)", "x"),
    "beyond 15 the slope is that at 15",
    verdict="refuted",
)
def truncated_exponential():
    class TruncExp(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.exp(x)

        @staticmethod
        def backward(ctx, d_out):
            (x,) = ctx.saved_tensors
            return d_out * torch.exp(x.clamp(-15, 15))

    return weighted(TruncExp.apply), (torch.tensor([0.5, 16.0]).double(),), numbers(2)


@shown(
    "ranking as a black box",
    "martius-lab/blackbox-backprop: blackbox_backprop/ranking.py at 075bf56",
    "rank of x / n",
    ("(rank_after - rank) / step", "0 * x"),
    "a difference of ranks over a large step, since the slope is 0",
    verdict="refuted",
)
def blackbox_ranking():
    class TrueRanker(Function):
        @staticmethod
        def forward(ctx, x, step):
            rank = (x[:, None] <= x).sum(1).to(x.dtype) / len(x)
            ctx.save_for_backward(x, rank)
            ctx.step = step
            return rank

        @staticmethod
        def backward(ctx, d_out):
            x, rank = ctx.saved_tensors
            step = ctx.step
            moved = x + step * d_out
            rank_after = (moved[:, None] <= moved).sum(1).to(x.dtype) / len(x)
            return (rank_after - rank) / step, None

    def apply(x):
        return TrueRanker.apply(x, 2.0)

    return weighted(apply), (numbers(4),), numbers(4, seed=1)


@shown(
    "adjoint of a neural ODE, Euler steps",
    "rtqichen/torchdiffeq: torchdiffeq/_impl/adjoint.py at 03c6e63",
    "y[i+1] = y[i] + h tanh(W y[i])",
    ("tanh(w @ y[i + 1])", "tanh(w @ y[i])"),
    "the adjoint equation is solved, too, by Euler steps: right as h goes to 0",
    verdict="refuted",
)
def ode_adjoint():
    class OdeintAdjoint(Function):
        @staticmethod
        def forward(ctx, y, w, h):
            states = [y]
            for _ in range(3):
                states.append(states[-1] + h * torch.tanh(w @ states[-1]))
            ctx.save_for_backward(w, torch.stack(states))
            ctx.h = h
            return states[-1]

        @staticmethod
        def backward(ctx, d_out):
            w, y = ctx.saved_tensors
            d_y = d_out
            for i in reversed(range(3)):
                f = torch.tanh(w @ y[i + 1])
                d_y = d_y + ctx.h * w.T @ (d_y * (1 - f * f))
            return d_y, None, None

    def apply(y, w):
        return OdeintAdjoint.apply(y, w, 0.1)

    return weighted(apply), (numbers(2),), numbers(2, seed=1), numbers(2, 2)


@shown(
    "integral by quadrature, slope by Leibniz",
    "AWehenkel/UMNN: models/UMNN/ParallelNeuralIntegral.py at 1582bdf",
    "Simpson's rule for the integral of exp(h t) from 0 to x",
    ("d_x = at_end", "d_x = mean + x * (2 * h * at_middle + h * at_end) / 6"),
    "the slope of the integral, not of the rule",
    verdict="refuted",
)
def leibniz():
    class Integral(Function):
        @staticmethod
        def forward(ctx, x, h):
            ctx.save_for_backward(x, h)
            return x * (1 + 4 * torch.exp(h * x / 2) + torch.exp(h * x)) / 6

        @staticmethod
        def backward(ctx, d_out):
            x, h = ctx.saved_tensors
            at_middle, at_end = torch.exp(h * x / 2), torch.exp(h * x)
            mean = (1 + 4 * at_middle + at_end) / 6  # noqa: F841
            d_x = at_end
            d_h = x * (2 * x * at_middle + x * at_end) / 6
            return d_out * d_x, (d_out * d_h).sum()

    theta = numbers(3).abs(), torch.tensor(0.7).double()
    return weighted(Integral.apply), theta, numbers(3, seed=1)


# --- bugs in public code


@shown(
    "local response normalisation",
    "pytorch/pytorch: torch/nn/modules/_functions.py at 016ec49, torch.nn.CrossMapLRN2d of 2.13",
    "x (k + a / n sum of squares in a window)^-b",
    ("late = 1", "late = 0"),
    "translated from Lua, whose indices begin at 1: the windows of value and gradient are late by "
    "a channel (found here)",
    verdict="refuted",
)
def cross_map_lrn():
    late = 1

    class CrossMapLRN(Function):
        @staticmethod
        def forward(ctx, x, size, alpha, beta):
            channels, ahead = len(x), (size - 1) // 2 + 1
            square = x**2
            scale = [square[:ahead].sum(0)]
            for c in range(1, channels):
                window = scale[-1]
                if c < channels - ahead + 1:
                    window = window + square[c + ahead - 1]
                if c >= ahead + late:
                    window = window - square[c - ahead]
                scale.append(window)
            scale = torch.stack(scale) * alpha / size + 1
            out = x * torch.exp(-beta * torch.log(scale))
            ctx.save_for_backward(x, out, scale)
            ctx.constants = size, alpha, beta
            return out

        @staticmethod
        def backward(ctx, d_out):
            x, out, scale = ctx.saved_tensors
            size, alpha, beta = ctx.constants
            near = size // 2
            ratio = d_out * out / scale
            d_x = []
            for c in range(len(x)):
                total = ratio[max(0, c - near - late) : c + near + 1 - late].sum(0)
                own = d_out[c] * torch.exp(-beta * torch.log(scale[c]))
                d_x.append(own - 2 * alpha * beta / size * x[c] * total)
            return torch.stack(d_x), None, None, None

    def apply(x):
        return CrossMapLRN.apply(x, 3, 0.5, 0.75)

    return weighted(apply), (numbers(5, 1),), numbers(5, 1, seed=1)


@shown(
    "cosine similarity",
    "pytorch/pytorch: aten/src/ATen/native/Distance.cpp, pull requests 31378 and 104771, "
    "torch.nn.functional.cosine_similarity of 2.13",
    "x y / (max(|x|, eps) max(|y|, eps))",
    ("slope = x / norm", "slope = x / norm * (norm > eps)"),
    "the norm is bounded without autograd, so that one below eps counts as if it were not bounded "
    "in the slope",
    verdict="refuted",
)
def cosine_similarity():
    class CosineSimilarity(Function):
        @staticmethod
        def forward(ctx, x, y, eps):
            norm_x = x.norm(dim=1, keepdim=True).clamp(min=eps)
            norm_y = y.norm(dim=1, keepdim=True).clamp(min=eps)
            ctx.save_for_backward(x, x / norm_x, y / norm_y)
            ctx.eps = eps
            return (x / norm_x * (y / norm_y)).sum(1)

        @staticmethod
        def backward(ctx, d_out):
            x, x_unit, y_unit = ctx.saved_tensors
            eps = ctx.eps
            norm = x.norm(dim=1, keepdim=True)
            cosine = (x_unit * y_unit).sum(1, keepdim=True)
            slope = x / norm
            return d_out[:, None] * (y_unit - cosine * slope) / norm.clamp(min=eps), None, None

    def apply(x, y):
        return CosineSimilarity.apply(x, y, 0.5)

    x = numbers(2, 3) * torch.tensor([[0.1], [2.0]]).double()
    return weighted(apply), (x,), numbers(2, seed=1), numbers(2, 3, seed=2)


@shown(
    "cube and its slope",
    FUNCTION_TESTS,
    "x^3 and 3 x^2",
    ("6 * slope", "6 * d_slope * x"),
    "the second output's cotangent is left out (found here)",
    verdict="refuted",
)
def cube():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            slope = 3 * x**2
            ctx.save_for_backward(x, slope)
            return x**3, slope

        @staticmethod
        def backward(ctx, d_cube, d_slope):
            x, slope = ctx.saved_tensors  # noqa: RUF059
            return d_cube * slope + 6 * slope

    def apply(x):
        return torch.stack(Cube.apply(x))

    return weighted(apply), (numbers(3),), numbers(2, 3)


@shown(
    "product",
    "pytorch/pytorch: torch/autograd/_functions/reduce.py, issue 995",
    "x1 x2 ... xn",
    ("product / x", "d_out * product / x"),
    "the cotangent is left out",
    verdict="refuted",
)
def product():
    class Prod(Function):
        @staticmethod
        def forward(ctx, x):
            out = x.prod()
            ctx.save_for_backward(x, out)
            return out

        @staticmethod
        def backward(ctx, d_out):
            x, product = ctx.saved_tensors
            return product / x

    return weighted(Prod.apply), (numbers(3),), numbers(1)


@shown(
    "ISRLU",
    "pytorch/pytorch: issue 4355, asked why gradcheck fails",
    "x / sqrt(1 + min(x, 0)^2)",
    ("return r**3", "return d_out * r**3"),
    "the cotangent is left out",
    verdict="refuted",
    reason="1 / weights times what is right",
)
def isrlu():
    class ISRLU(Function):
        @staticmethod
        def forward(ctx, x):
            r = torch.rsqrt(1 + torch.clamp(x, max=0) ** 2)
            ctx.save_for_backward(r)
            return x * r

        @staticmethod
        def backward(ctx, d_out):
            (r,) = ctx.saved_tensors
            return r**3

    return weighted(ISRLU.apply), (numbers(4),), numbers(4, seed=1)


@shown(
    "softplus with a threshold",
    "pytorch/pytorch: aten/src/ATen/native/cpu/Activation.cpp, issue 55587",
    "log(1 + exp(b x)) / b, or x if b x > t",
    ("out * beta > threshold", "x * beta > threshold"),
    "the threshold is for x in the value, for the output in the slope",
    verdict="refuted",
)
def softplus_threshold():
    class Softplus(Function):
        @staticmethod
        def forward(ctx, x, beta, threshold):
            out = torch.where(x * beta > threshold, x, torch.log1p(torch.exp(beta * x)) / beta)
            ctx.save_for_backward(x, out)
            ctx.constants = beta, threshold
            return out

        @staticmethod
        def backward(ctx, d_out):
            x, out = ctx.saved_tensors
            beta, threshold = ctx.constants
            is_linear = out * beta > threshold
            z = torch.exp(x * beta)
            return torch.where(is_linear, d_out, d_out * z / (z + 1)), None, None

    def apply(x):
        return Softplus.apply(x, 3.0, 1.0)

    return weighted(apply), (torch.tensor([0.2736, -0.5, 1.2]).double(),), numbers(3)


@shown(
    "bias and GELU by tanh",
    f"{MEGATRON}/fusions/fused_bias_gelu.py at 19d6aac",
    "gelu(y + b)",
    ("0.1070322243 * x * x", "0.79788456 * (0.044715 * (3 * x * x))"),
    "a product of constants is rounded to ten digits (found here)",
    verdict="refuted",
)
def bias_gelu():
    class BiasGeLU(Function):
        @staticmethod
        def forward(ctx, y, bias):
            ctx.save_for_backward(y, bias)
            x = y + bias
            return 0.5 * x * (1 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))

        @staticmethod
        def backward(ctx, d_out):
            y, bias = ctx.saved_tensors
            x = y + bias
            t = torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
            d_inner = 0.79788456 + 0.1070322243 * x * x
            d_x = d_out * (0.5 * x * (1 - t * t) * d_inner + 0.5 * (1 + t))
            return d_x, d_x.sum(0)

    return weighted(BiasGeLU.apply), (numbers(3, 2), numbers(2)), numbers(3, 2, seed=1)


@shown(
    "RMS norm with trained weights",
    "unslothai/unsloth: unsloth/kernels/rms_layernorm.py at 0050c73, issue 4533",
    "w x / sqrt(mean x^2 + eps)",
    ("return d_x, None", "return d_x, (d_out * x * r).sum(0)"),
    "the weights get no gradient",
    verdict="refuted",
    reason="they are 0 by hand",
)
def rms_norm_weights():
    class FastRMSNorm(Function):
        @staticmethod
        def forward(ctx, x, w):
            r = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
            ctx.save_for_backward(x, w, r)
            return x * r * w

        @staticmethod
        def backward(ctx, d_out):
            x, w, r = ctx.saved_tensors
            n, normed = x.shape[-1], x * r
            along = (d_out * w * normed).sum(-1, keepdim=True)
            d_x = r / n * (n * d_out * w - normed * along)
            return d_x, None

    return weighted(FastRMSNorm.apply), (numbers(2, 3), numbers(3)), numbers(2, 3, seed=1)


@shown(
    "cross entropy with smoothing and z-loss",
    f"{LIGER}/cross_entropy.py at 02e90db",
    "(1 - e) CE + e mean(-log p) + c logsumexp^2",
    ("(p - smooth) * (1 + 2 * z_scale * log_sum)", "p * (1 + 2 * z_scale * log_sum) - smooth"),
    "the z-loss acts on p minus the smoothing (found here; mended since)",
    verdict="refuted",
)
def z_loss():
    class LigerCrossEntropy(Function):
        @staticmethod
        def forward(ctx, logits, target, smoothing, z_scale):
            rows = torch.arange(len(target))
            log_sum = torch.logsumexp(logits, -1, keepdim=True)
            ctx.save_for_backward(logits, target, log_sum)
            ctx.constants = smoothing, z_scale
            loss = (1 - smoothing) * (log_sum[:, 0] - logits[rows, target])
            loss = loss + smoothing * (log_sum[:, 0] - logits.mean(-1))
            return (loss + z_scale * log_sum[:, 0] ** 2).mean()

        @staticmethod
        def backward(ctx, d_out):
            logits, target, log_sum = ctx.saved_tensors
            smoothing, z_scale = ctx.constants
            p = torch.exp(logits - log_sum)
            smooth = smoothing / logits.shape[-1]
            d_logits = (p - smooth) * (1 + 2 * z_scale * log_sum)
            d_logits[torch.arange(len(target)), target] -= 1 - smoothing
            return d_out * d_logits / len(target), None, None, None

    def apply(logits, target):
        return LigerCrossEntropy.apply(logits, target, 0.1, 1e-4)

    return weighted(apply), (numbers(3, 4),), numbers(1), torch.tensor([0, 2, 3])


@shown(
    "center loss",
    "jxgu1016/MNIST_center_loss_pytorch: CenterLoss.py at 2d7f7c6",
    "c sum |x - center[label]|^2 / 2",
    (
        "scale * d_x, None, d_centers / counts",
        "d_out * scale * d_x, None, d_out * scale * d_centers",
    ),
    "no cotangent; the centers get the paper's update, which is no gradient",
    verdict="refuted",
)
def center_loss():
    class CenterLoss(Function):
        @staticmethod
        def forward(ctx, x, label, centers, scale):
            ctx.save_for_backward(x, label, centers)
            ctx.scale = scale
            return ((x - centers[label]) ** 2).sum() * scale / 2

        @staticmethod
        def backward(ctx, d_out):
            x, label, centers = ctx.saved_tensors
            scale = ctx.scale
            d_x = x - centers[label]
            d_centers = torch.zeros_like(centers).index_add(0, label, -d_x)
            n_members = (label == torch.arange(len(centers))[:, None]).sum(1, keepdim=True)
            counts = 1 + n_members
            return scale * d_x, None, d_centers / counts, None

    def apply(x, centers, label):
        return CenterLoss.apply(x, label, centers, 1.0)

    return weighted(apply), (numbers(4, 2), numbers(3, 2)), numbers(1), torch.tensor([0, 0, 2, 1])


@shown(
    "Dice coefficient",
    "milesial/Pytorch-UNet: dice_loss.py at 24a26ea, after issue 35",
    "(2 x.y + eps) / (sum x + sum y + eps)",
    ("2 * (target * union - inter)", "(2 * target * union - (2 * inter + 0.0001))"),
    "eps is left out of the slope (found here)",
    verdict="refuted",
)
def dice():
    class DiceCoeff(Function):
        @staticmethod
        def forward(ctx, x, target):
            inter = x @ target
            union = x.sum() + target.sum() + 0.0001
            ctx.save_for_backward(target, inter, union)
            return (2 * inter + 0.0001) / union

        @staticmethod
        def backward(ctx, d_out):
            target, inter, union = ctx.saved_tensors
            return d_out * 2 * (target * union - inter) / (union * union), None

    target = torch.tensor([0.0, 1.0, 1.0, 0.0]).double()
    return weighted(DiceCoeff.apply), (torch.sigmoid(numbers(4)),), numbers(1), target


@shown(
    "Dice coefficient, before",
    "milesial/Pytorch-UNet: dice_loss.py, issue 35",
    "2 x.y / (sum x + sum y)",
    ("target * union + inter", "target * union - inter"),
    "the quotient rule with a plus",
    verdict="refuted",
)
def dice_before():
    class DiceCoeff(Function):
        @staticmethod
        def forward(ctx, x, target):
            inter = x @ target
            union = x.sum() + target.sum()
            ctx.save_for_backward(target, inter, union)
            return 2 * inter / union

        @staticmethod
        def backward(ctx, d_out):
            target, inter, union = ctx.saved_tensors
            return d_out * 2 * (target * union + inter) / (union * union), None

    target = torch.tensor([0.0, 1.0, 1.0, 0.0]).double()
    return weighted(DiceCoeff.apply), (torch.sigmoid(numbers(4)),), numbers(1), target


@shown(
    "root of a covariance, one step",
    f"{MPNCOV}, pull request 7",
    "one Newton-Schulz step",
    ("last = 0.5 * (3 * eye - a)", "last = 0.5 * a @ (3 * eye - a)"),
    "the value of one step lacks a factor that its gradient has",
    verdict="refuted",
)
def covariance_root_one_step():
    class Sqrtm(Function):
        @staticmethod
        def forward(ctx, x):
            cov = x @ x.T
            eye = torch.eye(len(x), dtype=x.dtype)
            norm = cov.diagonal().sum()
            a = cov / norm
            last = 0.5 * (3 * eye - a)
            ctx.save_for_backward(x, cov, norm, a, last)
            return last * norm.sqrt()

        @staticmethod
        def backward(ctx, d_out):
            x, cov, norm, a, last = ctx.saved_tensors
            eye = torch.eye(len(x), dtype=x.dtype)
            d_last = d_out * norm.sqrt()
            d_a = 0.5 * (d_last @ (3 * eye - a) - a @ d_last)
            d_norm = (d_out * last).sum() / (2 * norm.sqrt()) - (d_a * cov).sum() / norm**2
            d_cov = d_a / norm + d_norm * eye
            return (d_cov + d_cov.T) @ x

    return weighted(Sqrtm.apply), (numbers(2, 3),), numbers(2, 2)
