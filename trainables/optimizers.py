"""Optimizers and learning-rate schedules."""

import math
from collections.abc import Callable, Iterable
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Lt
from torch import nn

from trainables.choices import Choice, Menu


def sgd(
    weights: Iterable[nn.Parameter],
    *,
    lr: Annotated[float, Gt(0)],
    momentum: Annotated[float, Ge(0), Lt(1)] = 0.0,
    weight_decay: Annotated[float, Ge(0)] = 0.0,
    nesterov: bool = False,
) -> torch.optim.Optimizer:
    """Stochastic gradient descent, w -= lr (g + weight_decay w), with torch's momentum buffer."""
    return torch.optim.SGD(weights, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov and momentum > 0)


def constant(epoch: int, epochs: int) -> float:
    """The optimizer's learning rate throughout."""
    return 1.0


def cosine(epoch: int, epochs: int) -> float:
    """From the optimizer's learning rate to 0 along half a cosine, by epoch."""
    return (1 + math.cos(math.pi * epoch / epochs)) / 2


def learning_rate(optimizer: Choice, schedule: Choice, epoch: int, epochs: int) -> float:
    return optimizer.parameters["lr"] * SCHEDULES.build(schedule, epoch, epochs)


_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"sgd": sgd}
OPTIMIZERS = Menu("optimizer", _OPTIMIZERS)

_SCHEDULES: dict[str, Callable[..., float]] = {"constant": constant, "cosine": cosine}
SCHEDULES = Menu("schedule", _SCHEDULES)
