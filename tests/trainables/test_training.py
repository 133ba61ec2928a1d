import math
import random

import numpy
import pytest
import torch

from tests.trainables.small_training import (
    ABOUT_CORRUPTED,
    ABOUT_VALID,
    EVALUATED,
    EVERY_LOSS,
    TRAINED,
    assert_identical,
    finish,
    record_steps,
    weights,
)
from trainables.training import Diverged


def scatter_global_random_state(seed):
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)


@EVERY_LOSS
def test_twice_the_same_trial_is_bit_identical(start, loss):
    scatter_global_random_state(1)
    one = start(loss=loss)
    first = finish(one)
    scatter_global_random_state(2)
    other = start(loss=loss)
    assert finish(other) == first
    assert_identical(weights(one), weights(other))
    assert one.summary() == other.summary()
    assert one.facts() == other.facts()


@pytest.mark.parametrize("evaluate_every", [1, 2])
@pytest.mark.parametrize("interrupted_after", [0, 1, 2])
@EVERY_LOSS
def test_interrupted_and_resumed_is_bit_identical(start, tmp_path, loss, interrupted_after, evaluate_every):
    changes = {"loss": loss, "evaluate_every": evaluate_every}
    whole = start(**changes)
    history = finish(whole)
    part = start(**changes)
    for _ in range(interrupted_after):
        part.epoch()
    torch.save(part.state_dict(), tmp_path / "state.pt")
    scatter_global_random_state(3)
    resumed = start(**changes)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert resumed.epochs_done == interrupted_after
    assert finish(resumed) == history[interrupted_after:]
    assert_identical(weights(resumed), weights(whole))
    assert resumed.summary() == whole.summary()
    assert resumed.facts() == whole.facts()


@EVERY_LOSS
def test_every_loss_meets_the_same_labels_splits_initial_weights_and_batches(start, loss):
    one, other = start(loss="ce"), start(loss=loss, unit_max=True)
    assert numpy.array_equal(one.splits.observed, other.splits.observed)
    assert numpy.array_equal(one.splits.train, other.splits.train)
    assert numpy.array_equal(one.splits.valid, other.splits.valid)
    assert_identical(weights(one), weights(other))
    steps = [record_steps(training) for training in (one, other)]
    finish(one), finish(other)
    batches = [[inputs for inputs, _ in seen] for seen in steps]
    assert len(batches[0]) == len(batches[1]) == 3 * math.ceil(len(one.train) / 128)
    assert all(torch.equal(*pair) for pair in zip(*batches, strict=True))


def test_another_seed_changes_labels_splits_initial_weights_and_batches(start):
    one, other = start(seed=0), start(seed=1)
    assert not numpy.array_equal(one.splits.observed, other.splits.observed)
    assert not numpy.array_equal(one.splits.train, other.splits.train)
    assert not torch.equal(one.model[0].weight, other.model[0].weight)
    orders = [torch.randperm(100, generator=training.order) for training in (one, other)]
    assert not torch.equal(*orders)


@pytest.mark.parametrize("batch_size", [1, 22, 128, 1166, 1167, 5000])
def test_an_epoch_shows_every_training_image_once_even_if_one_is_left_over(start, batch_size):
    training = start(batch_size=batch_size, epochs=2 if batch_size > 1 else 1)
    assert len(training.train) == 1167  # so 22 and 1166 leave a rest of one
    steps = record_steps(training)
    history = finish(training)
    size = math.ceil(1167 / batch_size)
    wanted = sorted(image.numpy().tobytes() for image in training._normalised(training.images[training.train]))
    orders = []
    for epoch in range(training.trial.epochs):
        seen = torch.cat([inputs for inputs, _ in steps[epoch * size : (epoch + 1) * size]])
        orders.append([image.numpy().tobytes() for image in seen])
        assert sorted(orders[-1]) == wanted
    assert orders[0] != orders[-1] or len(orders) == 1
    assert all(math.isfinite(value) for metrics in history for value in metrics.values())


@pytest.mark.parametrize("valid_share", [0.0, 0.1, 0.5, 0.9])
def test_train_and_valid_are_disjoint_and_cover_the_training_set(start, digits, valid_share):
    training = start(valid_share=valid_share)
    train, valid = training.splits.train.tolist(), training.splits.valid.tolist()
    assert sorted(train + valid) == list(range(len(digits.train_labels)))
    assert len(valid) == round(valid_share * len(digits.train_labels))


@EVERY_LOSS
def test_metrics_are_numbers_with_the_agreed_names(start, loss):
    training = start(loss=loss, evaluate_every=2)
    for wanted in (TRAINED, TRAINED | EVALUATED, TRAINED | EVALUATED):  # the last epoch is always evaluated
        metrics = training.epoch()
        assert metrics.keys() == wanted
        assert all(type(value) is float and math.isfinite(value) for value in metrics.values())
    assert "realised_noise_rate" in training.facts()
    assert training.summary().keys() <= {"test_accuracy_best", "test_accuracy_final"}


def test_best_test_accuracy_is_the_best_of_all_evaluations(start):
    training = start()
    assert training.summary()["test_accuracy_best"] == -math.inf or not training.summary()
    history = finish(training)
    assert training.summary()["test_accuracy_best"] == max(metrics["test_accuracy"] for metrics in history)


def test_best_test_accuracy_survives_an_interruption(start):
    part = start()
    best = part.epoch()["test_accuracy"]
    resumed = start()
    resumed.load_state_dict(part.state_dict())
    with torch.no_grad():
        resumed.model[-1].weight.zero_()  # all scores level: as bad as guessing
    assert resumed.evaluate()["test_accuracy"] < best
    assert resumed.summary()["test_accuracy_best"] == best


def test_without_noise_nothing_is_said_of_corrupted_labels(start):
    metrics = start(noise="none").epoch()
    assert metrics.keys() == (TRAINED | EVALUATED) - ABOUT_CORRUPTED
    assert metrics["weight_clean"] == pytest.approx(metrics["alpha"])


@pytest.mark.parametrize("lr", [0.05, 0.1])
def test_without_a_right_label_nothing_is_said_of_clean_ones(start, lr):
    training = start(noise={"name": "symmetric", "rate": 1.0}, optimizer={"name": "sgd", "lr": lr})
    for metrics in finish(training):
        assert not metrics.keys() & {"weight_clean", "weight_snr", "train_clean_accuracy", "corruption_auc"}


def test_without_validation_set_nothing_is_said_of_it(start):
    training = start(valid_share=0.0)
    assert len(training.valid) == 0
    assert training.epoch().keys() == (TRAINED | EVALUATED) - ABOUT_VALID


@EVERY_LOSS
def test_a_diverging_training_raises(start, loss):
    training = start(loss=loss, optimizer={"name": "sgd", "lr": 1e30})
    with pytest.raises(Diverged, match=r"(in|after) epoch 1$"):
        finish(training)
