import math

import pytest
import torch

from tests.trainables import published_losses as published
from tests.trainables.measures import (
    EVERY_LOSS,
    TOLERANCE,
    assert_close,
    derivative,
    exact_gradient,
    extreme_logits,
    largest_weight,
    name_of,
    random_logits,
)
from tests.trainables.published_losses import INITIAL_WEIGHTS, MAX_WEIGHTS, SETTINGS
from trainables.choices import BadChoice
from trainables.losses import MARGIN_LOSSES, build_loss
from trainables.margins import soft_margin

POSITIVE = [2**-10, 0.25, 0.5, 1, 2, 3.5, 5, 8, 10, 15, 20, 20.5, 30, 50, 80, 87, 100, 150, 200]
MARGINS = [-m for m in reversed(POSITIVE)] + [0] + POSITIVE
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)


@pytest.mark.parametrize("name", MARGIN_LOSSES)
def test_every_listed_loss_is_held_against_its_paper(name):
    for table in (SETTINGS, published.VALUES, published.WEIGHTS):
        assert name in table, f"loss {name} is listed, but tests/trainables/published_losses.py does not know it"


@DTYPES
@EVERY_LOSS
def test_value_is_the_published_one_at_margins_up_to_200(loss, dtype):
    value = build_loss(loss, 10).value(torch.tensor(MARGINS, dtype=dtype))
    assert_close(value, [published.value(loss, margin) for margin in MARGINS], dtype)


@DTYPES
@EVERY_LOSS
def test_weight_is_the_published_one_at_margins_up_to_200(loss, dtype):
    weight = build_loss(loss, 10).weight(torch.tensor(MARGINS, dtype=dtype))
    assert (weight >= 0).all()
    assert_close(weight, [published.weight(loss, margin) for margin in MARGINS], dtype)


def test_ce_is_exact_just_beyond_a_margin_of_minus_20():
    value = build_loss("ce", 10).value(torch.tensor([-20.0078125], dtype=torch.float64))
    assert_close(value, [published.value({"name": "ce"}, -20.0078125)], torch.float64)


@EVERY_LOSS
def test_weight_is_minus_the_derivative_of_the_value(loss):
    margin = torch.linspace(-15, 15, 601, dtype=torch.float64)
    built = build_loss(loss, 10)
    torch.testing.assert_close(-derivative(built.value, margin), built.weight(margin), rtol=1e-9, atol=1e-13)


@EVERY_LOSS
def test_max_weight_is_the_largest_weight(loss):
    built = build_loss(loss, 10)
    assert built.shape.max_weight == pytest.approx(largest_weight(built), rel=1e-9)


@pytest.mark.parametrize(("loss", "maximum"), MAX_WEIGHTS, ids=lambda case: name_of(case) if isinstance(case, dict) else "")
def test_max_weight_is_the_printed_one(loss, maximum):
    assert build_loss(loss, 10).shape.max_weight == pytest.approx(maximum, abs=1e-9)


@pytest.mark.parametrize(
    ("loss", "hundred", "ten"), INITIAL_WEIGHTS, ids=lambda case: name_of(case) if isinstance(case, dict) else ""
)
def test_initial_unit_max_weights_are_the_printed_ones(loss, hundred, ten):
    weight = build_loss(loss, 10, unit_max=True).weight(torch.tensor([-5.085, -2.618], dtype=torch.float64))
    assert weight.tolist() == pytest.approx([hundred, ten], abs=6e-4)


@DTYPES
@pytest.mark.parametrize("logits_and_labels", [lambda dtype: random_logits(3, dtype), extreme_logits], ids=["moderate", "200"])
@EVERY_LOSS
def test_logit_gradient_is_minus_weight_times_margin_gradient(loss, logits_and_labels, dtype):
    logits, labels = logits_and_labels(dtype)
    build_loss(loss, 6)(logits, labels).sum().backward()
    # Three times the tolerance: a float32 logsumexp near 200 is itself rounded to 1.5e-5.
    assert_close(logits.grad, exact_gradient(logits, labels, lambda margin: published.weight(loss, margin)), dtype, slack=3)


@EVERY_LOSS
def test_loss_of_logits_is_the_value_at_their_margin_and_obeys_upstream_gradients(loss):
    logits, labels = random_logits(3)
    built = build_loss(loss, 6)
    losses = built(logits, labels)
    assert torch.equal(losses.detach(), built.value(soft_margin(logits.detach(), labels)))
    factors = torch.arange(len(labels), dtype=torch.float64)
    (whole,) = torch.autograd.grad(losses.sum(), logits, retain_graph=True)
    (factored,) = torch.autograd.grad(losses @ factors, logits)
    torch.testing.assert_close(factored, whole * factors.unsqueeze(1), rtol=1e-14, atol=0)


@EVERY_LOSS
def test_unit_max_divides_value_weight_and_gradient_by_the_largest_weight(loss):
    plain, unit = build_loss(loss, 6), build_loss(loss, 6, unit_max=True)
    margin = torch.linspace(-9, 9, 101, dtype=torch.float64)
    largest = largest_weight(plain)
    assert largest_weight(unit) == pytest.approx(1, rel=1e-9)
    torch.testing.assert_close(unit.value(margin), plain.value(margin) / largest, rtol=1e-9, atol=0)
    logits, labels = random_logits(3)
    gradients = [torch.autograd.grad(built(logits, labels).sum(), logits)[0] for built in (plain, unit)]
    torch.testing.assert_close(gradients[1], gradients[0] / largest, rtol=1e-9, atol=0)


def test_gce_runs_from_ce_to_mae():
    margin = torch.linspace(-30, 30, 121, dtype=torch.float64)
    ce, mae, almost_ce, gce_1 = (
        build_loss(loss, 10) for loss in ("ce", "mae", {"name": "gce", "q": 1e-9}, {"name": "gce", "q": 1})
    )
    for ask in ("value", "weight"):
        torch.testing.assert_close(getattr(gce_1, ask)(margin), getattr(mae, ask)(margin), rtol=1e-12, atol=0)
        torch.testing.assert_close(getattr(almost_ce, ask)(margin), getattr(ce, ask)(margin), rtol=1e-7, atol=0)


def test_imae_with_temperature_0_weighs_every_sample_one_half():
    assert (build_loss({"name": "imae", "T": 0}, 10).weight(torch.tensor(MARGINS)) == 0.5).all()


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("logits", [random_logits(3)[0], extreme_logits()[0]], ids=["moderate", "200"])
def test_mae_is_symmetric(logits, factor):
    loss = build_loss({"name": "mae", "factor": factor}, 6)
    total = sum(loss(logits, torch.full((len(logits),), label)) for label in range(6))
    torch.testing.assert_close(
        total.detach(), torch.full((len(logits),), 5.0 * factor, dtype=torch.float64), rtol=1e-13, atol=0
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@EVERY_LOSS
def test_half_precision_logits_get_a_finite_gradient_of_their_own_dtype(loss, dtype):
    for logits, labels in (random_logits(3, dtype), extreme_logits(dtype)):
        values = build_loss(loss, 6)(logits, labels)
        values.sum().backward()
        assert torch.isfinite(values).all()
        assert logits.grad.dtype == dtype
        assert torch.isfinite(logits.grad).all()
        exact = logits.detach().double().requires_grad_()
        build_loss(loss, 6)(exact, labels).sum().backward()
        torch.testing.assert_close(logits.grad.double(), exact.grad, rtol=2 * torch.finfo(dtype).eps, atol=1e-4)


def test_imae_value_is_finite_in_float32_while_its_weight_is():
    loss = build_loss({"name": "imae", "T": 64.0}, 10)
    margin = torch.tensor([-3.0, 0.0, 2.0])
    assert torch.isfinite(loss.weight(margin)).all()
    assert torch.isfinite(loss.value(margin)).all()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"name": "gce", "q": 1.5}, "loss gce takes q in (0, 1], but got 1.5"),
        ({"name": "gce", "q": 0}, "loss gce takes q in (0, 1], but got 0"),
        ({"name": "imae", "T": -1}, "loss imae takes T in [0, 64], but got -1"),
        ({"name": "imae", "T": math.inf}, "loss imae takes T in [0, 64], but got inf"),
        ({"name": "mae", "factor": 3}, "loss mae takes factor a whole number in [1, 2], but got 3"),
        ({"name": "ce", "scale": {"tau": 0}}, "loss ce scale takes tau > 0, but got 0"),
        ({"name": "ce", "scale": {"tau": 1}, "shift": {"tau": 1}}, "loss ce takes scale or shift, not both"),
        ("gec", "no loss is called 'gec'. Did you mean 'gce'? Known: " + ", ".join(MARGIN_LOSSES)),
        ("sandwich", "no loss is called 'sandwich'. Known: " + ", ".join(MARGIN_LOSSES)),
    ],
)
def test_what_no_loss_can_be_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(BadChoice) as refusal:
        build_loss(given, 10)
    assert str(refusal.value) == sentence
