import math

import pytest
import torch
from mpmath import mp, mpf

from tests.trainables import published_losses as published
from tests.trainables.measures import EVERY_LOSS, assert_close, derivative, exact_gradient, largest_weight, random_logits
from trainables.losses import build_loss
from trainables.margins import EXPECTED_MARGINS, expected_margin, soft_margin


@pytest.mark.parametrize("how", [*EXPECTED_MARGINS, 3.3])
@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("move", ["scale", "shift"])
@EVERY_LOSS
def test_scale_and_shift_start_at_minus_tau_and_keep_the_maximum(loss, move, classes, how):
    tau, start = 1.9, expected_margin(classes, how)
    plain, moved = (build_loss(given, classes) for given in (loss, loss | {move: {"tau": tau, "expected_margin": how}}))
    at = torch.tensor([-start, -tau], dtype=torch.float64)
    torch.testing.assert_close(moved.weight(at[:1]), plain.weight(at[1:]), rtol=1e-12, atol=0)
    assert largest_weight(moved) == pytest.approx(largest_weight(plain), rel=1e-9)
    assert moved.shape.max_weight == plain.shape.max_weight

    margin = torch.linspace(-12, 12, 101, dtype=torch.float64)
    a = tau / start
    wanted = plain.value(a * margin) / a if move == "scale" else plain.value(margin + start - tau)
    torch.testing.assert_close(moved.value(margin), wanted, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(-derivative(moved.value, margin), moved.weight(margin), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("move", ["scale", "shift"])
@EVERY_LOSS
def test_logit_gradient_of_a_moved_loss_has_the_moved_weight(loss, move):
    tau, start = mpf("1.9"), mp.log(6) + mpf(1) / 2 - (mp.e - 1) / 12
    moved = {"scale": lambda m: m * tau / start, "shift": lambda m: m + start - tau}[move]
    logits, labels = random_logits(3)
    build_loss(loss | {move: {"tau": 1.9}}, 6)(logits, labels).sum().backward()
    assert_close(logits.grad, exact_gradient(logits, labels, lambda m: published.weight(loss, moved(m))), torch.float64)


@pytest.mark.parametrize(
    ("how", "classes", "printed"), [("paper_k", 100, 5.097), ("paper_k", 10, 2.717), ("eq4", 100, 5.086), ("eq4", 10, 2.602)]
)
def test_expected_margin_is_the_quoted_one(how, classes, printed):
    assert round(expected_margin(classes, how), 3) == printed


def test_two_classes_refuse_the_expected_margin_of_eq4():
    with pytest.raises(ValueError, match="eq4"):
        build_loss({"name": "mae", "scale": {"tau": 1.0, "expected_margin": "eq4"}}, 2)


def test_margin_keeps_float32_precision_when_all_logits_are_large():
    margin = soft_margin(torch.full((1, 3), 200.0), torch.tensor([0]))
    assert margin.item() == pytest.approx(-math.log(2), rel=1e-6)
