import math

import numpy
import pytest
import torch
from sklearn.metrics import roc_auc_score

from tests.trainables.small_training import EVERY_LOSS, WEIGHTS, finish, record_steps, scores
from trainables import probes
from trainables.losses import build_loss
from trainables.margins import soft_margin


def test_validation_labels_are_the_observed_ones(start, digits):
    training = start()
    finish(training)
    valid = training.splits.valid
    assert 0.2 < (training.splits.observed[valid] != digits.train_labels[valid]).mean() < 0.6
    logits = scores(training, digits.train_images[valid], digits)
    observed = torch.from_numpy(training.splits.observed[valid])
    metrics = training.evaluate()
    assert metrics["valid_noisy_accuracy"] == pytest.approx(100 * (logits.argmax(1) == observed).double().mean().item())
    p = logits.double().softmax(1)
    distance = (p - torch.nn.functional.one_hot(observed, 10)).abs().sum(1).mean().item()
    assert metrics["valid_noisy_mae"] == pytest.approx(distance, rel=1e-5)


@EVERY_LOSS
def test_fit_and_accuracies_agree_with_a_slow_count(start, digits, loss):
    training = start(loss=loss)
    metrics = finish(training)[-1]
    index, observed = training.splits.train, training.splits.observed
    guesses = scores(training, digits.train_images[index], digits).argmax(1).tolist()
    test_guesses = scores(training, digits.test_images, digits).argmax(1).tolist()
    clean, corrupted, right = [], [], []
    for guess, i in zip(guesses, index, strict=True):
        (clean if observed[i] == digits.train_labels[i] else corrupted).append(guess == observed[i])
        right.append(guess == digits.train_labels[i])
    test = [guess == label for guess, label in zip(test_guesses, digits.test_labels, strict=True)]
    for name, hits in {
        "train_clean_accuracy": clean,
        "train_corrupted_fit": corrupted,
        "hybrid_accuracy": right + test,
        "test_accuracy": test,
    }.items():
        assert metrics[name] == pytest.approx(100 * sum(hits) / len(hits), rel=1e-12), name
    assert training.facts()["realised_noise_rate"] == pytest.approx(len(corrupted) / len(index), rel=1e-12)


@pytest.mark.parametrize("unit_max", [False, True])
@EVERY_LOSS
def test_weight_probes_agree_with_a_loop_over_all_steps_and_samples(start, digits, loss, unit_max):
    training = start(loss=loss, unit_max=unit_max)
    number = {image.numpy().tobytes(): i for i, image in enumerate(training._normalised(training.images))}
    published = build_loss(loss, 10)
    steps = record_steps(training)
    total = {False: [0.0, 0.0], True: [0.0, 0.0]}  # corrupted: lr * weight, lr
    samples, at = 0, 0
    for epoch in range(3):
        metrics = training.epoch()
        lr = 0.05 * (1 + math.cos(math.pi * epoch / 3)) / 2
        assert metrics["learning_rate"] == pytest.approx(lr)
        for inputs, logits in steps[at:]:
            for image, row in zip(inputs, logits.double(), strict=True):
                i = number[image.numpy().tobytes()]
                margin = soft_margin(row[None], torch.tensor([training.splits.observed[i]]))
                sums = total[bool(training.splits.observed[i] != digits.train_labels[i])]
                sums[0] += lr * published.weight(margin).item()
                sums[1] += lr
                samples += 1
        at = len(steps)
        (clean, clean_lr), (corrupted, corrupted_lr) = total[False], total[True]
        assert {name: metrics[name] for name in WEIGHTS} == pytest.approx(
            {
                "alpha": (clean + corrupted) / (clean_lr + corrupted_lr),
                "alpha_table2": (clean + corrupted) / samples,
                "weight_clean": clean / clean_lr,
                "weight_corrupted": corrupted / corrupted_lr,
                "weight_snr": clean / clean_lr / (corrupted / corrupted_lr),
            },
            rel=1e-5,
        )


def test_corruption_auc_is_the_roc_auc_with_ties_and_none_of_one_kind():
    random_margins = torch.Generator().manual_seed(0)
    for levels in (2, 5, 1000):
        margin = torch.randint(levels, (300,), generator=random_margins).double()
        corrupted = torch.rand(300, generator=random_margins) < 0.4
        wanted = roc_auc_score((~corrupted).numpy(), margin.numpy())
        assert probes.corruption_auc(margin, corrupted) == pytest.approx(wanted, rel=1e-12)
    for one_kind in (torch.ones(300, dtype=torch.bool), torch.zeros(300, dtype=torch.bool)):
        assert probes.corruption_auc(margin, one_kind) is None


def test_corruption_auc_of_a_training_is_that_of_its_margins(start, digits):
    training = start()
    found = finish(training)[-1]["corruption_auc"]
    index, observed = training.splits.train, training.splits.observed
    logits = scores(training, digits.train_images[index], digits)
    margin = soft_margin(logits.double(), torch.from_numpy(observed[index]))
    assert found == pytest.approx(roc_auc_score(observed[index] == digits.train_labels[index], margin.numpy()), rel=1e-4)


def test_margin_histograms_count_every_training_image_once(start):
    training = start()
    histogram = training.facts()["initial_margins"]
    assert sum(histogram["counts"]) == len(training.train)
    assert histogram["num_classes"] == 10


def test_margin_histogram_counts_what_lies_beyond_in_its_outermost_bins():
    random_margins = torch.Generator().manual_seed(0)
    margin = 15 * torch.randn(500, generator=random_margins, dtype=torch.float64)
    margin = torch.cat([margin, torch.tensor([-1e9, -30.0, 0.0, 30.0, 1e9], dtype=torch.float64)])
    histogram = probes.margin_histogram(margin)
    counts, edges = numpy.histogram(margin.clamp(-30, 30).numpy(), bins=240, range=(-30, 30))
    assert histogram["counts"] == counts.tolist()
    assert histogram["edges"] == pytest.approx(edges.tolist(), abs=1e-5)
