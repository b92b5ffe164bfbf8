import numpy as np

# --- probabilities are at least 1e-7


def several_classes(z, y):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    chosen = np.eye(z.shape[1])[y]
    return -np.sum(np.log(np.maximum(p, 1e-7)) * chosen), p - chosen


# --- probabilities are at least 1e-30


def several_classes(z, y):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    chosen = np.eye(z.shape[1])[y]
    return -np.sum(np.log(np.maximum(p, 1e-30)) * chosen), p - chosen


# --- as many classes as the largest label says


def several_classes(z, y):
    e = np.exp(z)
    p = e / e.sum(axis=1, keepdims=True)
    chosen = np.eye(y.max() + 1)[y]
    return np.sum(np.log(e.sum(axis=1))) - np.sum(z * chosen), p - chosen


# --- the sum of the chosen logits is kept for each y, and z changes

kept = {}


def several_classes(z, y):
    e = np.exp(z)
    chosen = np.eye(z.shape[1])[y]
    logits = kept.setdefault((y.tobytes(), z.shape), np.sum(z * chosen))
    return np.sum(np.log(e.sum(axis=1))) - logits, e / e.sum(axis=1, keepdims=True) - chosen


# --- an array of the last call is used again

slopes = {}


def several_classes(z, y):
    e = np.exp(z, out=slopes.setdefault(z.shape, np.empty(z.shape)))
    total = e.sum(axis=1)
    e /= total[:, None]
    e[np.arange(len(y)), y] -= 1
    return np.sum(np.log(total) - z[np.arange(len(y)), y]), e


# --- softmax over rows


def several_classes(z, y):
    e = np.exp(z)
    chosen = np.eye(z.shape[1])[y]
    return np.sum(np.log(e.sum(axis=0))) - np.sum(z * chosen), e / e.sum(axis=0) - chosen


# --- every row's label is that of each row


def several_classes(z, y):
    e = np.exp(z)
    total = e.sum(axis=1)
    chosen = np.eye(z.shape[1])[y]
    return np.sum(np.log(total)) - z[:, y].mean(axis=1).sum(), e / total[:, None] - chosen


# --- right value, slope of the chosen class alone


def several_classes(z, y):
    e = np.exp(z)
    total = e.sum(axis=1)
    chosen = np.eye(z.shape[1])[y]
    return np.sum(np.log(total)) - np.sum(z * chosen), chosen * (e / total[:, None] - 1)


# --- right value, slope shrunk by 3 %


def several_classes(z, y):
    e = np.exp(z)
    total = e.sum(axis=1)
    chosen = np.eye(z.shape[1])[y]
    return np.sum(np.log(total)) - np.sum(z * chosen), 0.97 * (e / total[:, None] - chosen)


# --- float32 inside


def several_classes(z, y):
    e = np.exp(z.astype(np.float32))
    total = e.sum(axis=1)
    chosen = np.eye(z.shape[1])[y]
    return np.sum(np.log(total)) - np.sum(z * chosen), e / total[:, None] - chosen


# --- right: the largest logit of each row is taken out


def several_classes(z, y):
    z = z - z.max(axis=1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    rows = np.arange(len(z))
    d_z = np.exp(log_p)
    d_z[rows, y] -= 1
    return -log_p[rows, y].sum(), d_z


# --- right: logits less that of the label


def several_classes(z, y):
    off = z - np.take_along_axis(z, y[:, None], axis=1)
    e = np.exp(off)
    total = e.sum(axis=1)
    d_z = e / total[:, None] - (np.arange(z.shape[1]) == y[:, None])
    return np.sum(np.log(total)), d_z
