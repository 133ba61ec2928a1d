"""Tools that hold a loss against exact numbers."""

import pytest
import torch
from mpmath import mp, mpf

from tests.trainables.published_losses import LISTED
from trainables.losses import LOSSES

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def name_of(loss):
    return LOSSES.choose(loss).label


EVERY_LOSS = pytest.mark.parametrize("loss", LISTED, ids=name_of)


def assert_close(actual, exact, dtype, slack=1):
    """To the dtype's tolerance where it can hold the exact number; finite and of no other sign where it cannot."""
    assert actual.dtype == dtype
    assert torch.isfinite(actual).all()
    smallest = torch.finfo(dtype).tiny
    for got, wanted in zip(actual.flatten().tolist(), exact, strict=True):
        if abs(wanted) > smallest:
            assert abs(mpf(got) / wanted - 1) < slack * TOLERANCE[dtype], (got, wanted)
        else:
            assert got * mp.sign(wanted) >= 0, (got, wanted)
            assert abs(got) <= 2 * smallest, (got, wanted)


def random_logits(spread, dtype=torch.float64, classes=6, samples=24, seed=0):
    random = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(samples, classes, generator=random, dtype=torch.float64)
    labels = torch.randint(classes, (samples,), generator=random)
    return logits.to(dtype).requires_grad_(), labels


def extreme_logits(dtype=torch.float64):
    """Scores of +-200 and 0: the label far above, far below and level with its rivals."""
    random = torch.Generator().manual_seed(1)
    logits = 200 * (torch.randint(3, (24, 6), generator=random) - 1).to(dtype)
    labels = torch.randint(6, (24,), generator=random)
    return logits.requires_grad_(), labels


def exact_gradient(logits, labels, weight):
    """-w grad(margin), row after row, in 50 digits."""
    gradient = []
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        scores = [mpf(score) for score in row]
        others = mp.fsum(mp.exp(score) for j, score in enumerate(scores) if j != label)
        pull = weight(scores[label] - mp.log(others))
        gradient += [-pull if j == label else pull * mp.exp(score) / others for j, score in enumerate(scores)]
    return gradient


def largest_weight(loss):
    """On a grid, then on a finer one about the best of it."""
    grid = torch.linspace(-100, 100, 200_001, dtype=torch.float64)
    best = grid[loss.weight(grid).argmax()].item()
    return loss.weight(torch.linspace(best - 1e-3, best + 1e-3, 20_001, dtype=torch.float64)).max().item()


def derivative(function, margin):
    margin = margin.clone().requires_grad_()
    (slope,) = torch.autograd.grad(function(margin).sum(), margin)
    return slope
