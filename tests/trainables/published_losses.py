"""The listed losses as their papers print them, in 50 digits: what value and weight are held against.

To test a new loss, add its settings, its value and its weight here; a test fails with its name until then.
"""

import functools

from mpmath import mp, mpf

from trainables.losses import MARGIN_LOSSES

mp.dps = 50

SETTINGS = {
    "ce": [{}],
    "mae": [{"factor": 1}, {"factor": 2}],
    "gce": [{"q": q} for q in (0.1, 0.3, 0.4, 0.7, 1.0)],
    "imae": [{"T": t} for t in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)],
}
LISTED = [{"name": name} | parameters for name in MARGIN_LOSSES for parameters in SETTINGS.get(name, [])]

# formulas.md, section 2
MAX_WEIGHTS = [
    ({"name": "ce"}, 1),
    ({"name": "mae"}, 1 / 4),
    ({"name": "mae", "factor": 2}, 1 / 2),
    ({"name": "gce", "q": 0.3}, 0.495461620),
    ({"name": "gce", "q": 0.4}, 0.432757643),
    ({"name": "gce", "q": 0.7}, 0.316086146),
    ({"name": "gce", "q": 1.0}, 1 / 4),
    ({"name": "imae", "T": 0.0}, 1 / 2),
    ({"name": "imae", "T": 0.5}, 0.566574227),
    ({"name": "imae", "T": 8.0}, 3.694528049),
    ({"name": "imae", "T": 16.0}, 27.299075017),
]
# The same section: unit-maximum weights at the true expected margins of 100 and of 10 classes, -5.085 and -2.618.
INITIAL_WEIGHTS = [
    ({"name": "ce"}, 0.994, 0.932),
    ({"name": "gce", "q": 0.3}, 0.436, 0.840),
    ({"name": "mae"}, 0.024, 0.253),
    ({"name": "imae", "T": 8.0}, 0.142, 0.225),
]


def p_and_rest(margin):
    """p and 1-p, each without cancellation."""
    return 1 / (1 + mp.exp(-margin)), 1 / (1 + mp.exp(margin))


def value(loss: dict, margin: float) -> mpf:
    parameters = {key: mpf(number) for key, number in loss.items() if key != "name"}
    return VALUES[loss["name"]](mpf(margin), **parameters)


def weight(loss: dict, margin: float) -> mpf:
    parameters = {key: mpf(number) for key, number in loss.items() if key != "name"}
    p, rest = p_and_rest(mpf(margin))
    return WEIGHTS[loss["name"]](p, rest, **parameters)


def _log_p(margin):
    return -mp.log1p(mp.exp(-margin))


@functools.cache
def _imae_value(margin, T):  # noqa: N803
    # dm = dp / (p (1-p)), from p = 1/2, where the value is 0; the odd half is enough.
    if margin < 0:
        return -_imae_value(-margin, T)
    _, rest = p_and_rest(margin)
    integral = mp.quad(lambda r: mp.expm1(T * r * (1 - r)) / (r * (1 - r)), [rest, 0.5], method="gauss-legendre")
    return -(margin + integral) / 2


VALUES = {
    "ce": lambda m: -_log_p(m),
    "mae": lambda m, factor=1: factor * p_and_rest(m)[1],
    "gce": lambda m, q: -mp.expm1(q * _log_p(m)) / q,
    "imae": _imae_value,
}
WEIGHTS = {
    "ce": lambda p, rest: rest,
    "mae": lambda p, rest, factor=1: factor * p * rest,
    "gce": lambda p, rest, q: p**q * rest,
    "imae": lambda p, rest, T: mp.exp(T * p * rest) / 2,  # noqa: N803
}
