"""Losses as sample weights: each is a function of the soft margin, with the weight it gives a sample.

A loss l(p_y) has the gradient -w(margin) * grad margin, with w = -l'(p) p (1-p) (Ou & Zhang, Eq. 1). Value and weight are both
written in closed form, stable at any logits; backward uses the weight, so that no autograd graph of the value can go wrong.
To add a loss, write one function that returns its `Shape` and list it in MARGIN_LOSSES.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from annotated_types import Ge, Gt, Le
from pydantic import BaseModel
from torch import Tensor
from torch.nn.functional import logsigmoid

from trainables.choices import STRICT, Choice, Menu
from trainables.margins import expected_margin, margin_and_rivals

sigmoid = torch.sigmoid


@dataclass(frozen=True)
class Shape:
    """A loss as a function of the margin: its published value, its weight |w|, and the weight's maximum."""

    value: Callable[[Tensor], Tensor]
    weight: Callable[[Tensor], Tensor]
    max_weight: float


def ce() -> Shape:
    """Cross entropy: -log p. The hardest samples weigh most."""
    return Shape(value=lambda m: -logsigmoid(m), weight=lambda m: sigmoid(-m), max_weight=1.0)


def mae(*, factor: Annotated[int, Ge(1), Le(2)] = 1) -> Shape:
    """Ghosh et al. 2017: factor * (1-p). Ou & Zhang use factor 1, Wang et al. print 2 and run 1 (T34)."""
    return Shape(
        value=lambda m: factor * sigmoid(-m),
        weight=lambda m: factor * sigmoid(m) * sigmoid(-m),
        max_weight=factor / 4,
    )


def gce(*, q: Annotated[float, Gt(0), Le(1)]) -> Shape:
    """Zhang & Sabuncu 2018: (1-p^q)/q, between CE (q -> 0) and MAE (q = 1)."""
    return Shape(
        value=lambda m: -torch.expm1(q * logsigmoid(m)) / q,
        weight=lambda m: torch.exp(q * logsigmoid(m)) * sigmoid(-m),
        max_weight=(q / (1 + q)) ** q / (1 + q),
    )


def imae(*, T: Annotated[float, Ge(0), Le(64)]) -> Shape:  # noqa: N803 - the paper's name
    """Wang et al. 2019: weight exp(T p (1-p)) / 2. The value is 0 at p = 1/2: the printed L(1) = 0 diverges (T31)."""
    coefficients = _imae_coefficients(T)

    def value(m: Tensor) -> Tensor:
        # The integral of the weight above its floor, as tanh(m/2) times a polynomial in u = p(1-p) of positive terms.
        u = sigmoid(m) * sigmoid(-m)
        powers = u.unsqueeze(-1) ** torch.arange(len(coefficients), device=m.device)
        return -(m + torch.tanh(m / 2) * (powers @ powers.new_tensor(coefficients))) / 2

    return Shape(value=value, weight=lambda m: torch.exp(T * sigmoid(m) * sigmoid(-m)) / 2, max_weight=math.exp(T / 4) / 2)


@functools.lru_cache(maxsize=1024)
def _imae_coefficients(T: float) -> tuple[float, ...]:  # noqa: N803
    """c such that the integral of (exp(T u) - 1) over the margin is tanh(m/2) * sum_i c_i u^i.

    With dm = dp / u the integrand is sum_n T^n/n! u^(n-1) dp, and J_n = integral of u^n dp from 1/2 obeys
    J_n = x u^n / (2 (2n+1)) + n / (2 (2n+1)) J_(n-1), where x = 2p-1 = tanh(m/2).
    """
    coefficients: list[float] = []
    integral: list[float] = []  # J_n / x as coefficients of u
    n, scale = 0, T  # scale = T^(n+1) / (n+1)!
    while scale * 0.25**n > 1e-18 or n < T / 4:
        integral = [c * n / (2 * (2 * n + 1)) for c in integral] + [1 / (2 * (2 * n + 1))]
        coefficients = [a + scale * b for a, b in zip([*coefficients, 0.0], integral, strict=True)]
        n += 1
        scale *= T / (n + 1)
    return tuple(coefficients) or (0.0,)


class Curriculum(BaseModel):
    """Where the weight function meets the samples at first: at the margin -tau instead of -E (Ou & Zhang, section 5.1.1)."""

    model_config = STRICT
    tau: Annotated[float, Gt(0)]
    expected_margin: Literal["paper_k", "eq4"] | Annotated[float, Gt(0)] = "paper_k"


def scaled(shape: Shape, a: float) -> Shape:
    """Weight w(a m). The paper's l(a m) would also multiply the learning rate by a, so the value is divided by it (T9)."""
    return Shape(lambda m: shape.value(a * m) / a, lambda m: shape.weight(a * m), shape.max_weight)


def shifted(shape: Shape, b: float) -> Shape:
    """Weight w(m + b), from the loss at that margin (sign as in T10)."""
    return Shape(lambda m: shape.value(m + b), lambda m: shape.weight(m + b), shape.max_weight)


class MarginLoss:
    """`loss(logits, labels)` gives one value a sample, and backward the published gradient; `loss.weight(margin)` gives |w|."""

    def __init__(self, shape: Shape, scale: float = 1.0):
        self.shape = shape
        self.scale = scale  # 1 / max|w| for unit-maximum training, else 1

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        return _FromWeight.apply(logits, labels, self)

    def value(self, margin: Tensor) -> Tensor:
        return self.shape.value(margin) * self.scale

    def weight(self, margin: Tensor) -> Tensor:
        return self.shape.weight(margin) * self.scale


class _FromWeight(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, loss: MarginLoss) -> Tensor:
        # Under autocast logits arrive in half precision, in which a margin is too coarse; float64 stays what it is.
        exact = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
        margin, rivals = margin_and_rivals(exact, labels)
        ctx.save_for_backward(loss.weight(margin), rivals, labels)
        ctx.dtype = logits.dtype
        return loss.value(margin)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        weight, rivals, labels = ctx.saved_tensors
        pull = (upstream[0] * weight).unsqueeze(1)
        gradient = (rivals * pull).scatter_(1, labels.unsqueeze(1), -pull)
        return gradient.to(ctx.dtype), None, None


def build_loss(given: Mapping[str, Any] | str | Choice, num_classes: int, unit_max: bool = False) -> MarginLoss:
    """The loss that a study file calls `given`; `unit_max` divides it by its largest weight (Ou & Zhang, section 5)."""
    choice = LOSSES.choose(given)
    parameters = choice.parameters
    scale, shift = parameters.pop("scale", None), parameters.pop("shift", None)
    shape = MARGIN_LOSSES[choice.name](**parameters)
    if scale:
        shape = scaled(shape, scale["tau"] / expected_margin(num_classes, scale["expected_margin"]))
    if shift:
        shape = shifted(shape, expected_margin(num_classes, shift["expected_margin"]) - shift["tau"])
    return MarginLoss(shape, scale=1 / shape.max_weight if unit_max else 1.0)


MARGIN_LOSSES: dict[str, Callable[..., Shape]] = {"ce": ce, "mae": mae, "gce": gce, "imae": imae}
LOSSES = Menu(
    "loss",
    MARGIN_LOSSES,
    extras={"scale": (Curriculum, None), "shift": (Curriculum, None)},
    exclusive=frozenset({"scale", "shift"}),
)
