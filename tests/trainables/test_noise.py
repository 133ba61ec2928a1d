import itertools
import math
import random

import numpy
import pytest
import torch

from trainables.noise import NOISES, corrupt, transition_matrix

EXAMPLES = {"none": [{}], "symmetric": [{"rate": rate} for rate in (0.0, 0.2, 0.4, 0.8, 1.0)]}
LISTED = [{"name": name} | parameters for name in NOISES.entries for parameters in EXAMPLES.get(name, [])]
EVERY_NOISE = pytest.mark.parametrize("noise", LISTED, ids=lambda noise: NOISES.choose(noise).label)
SYMMETRIC = {"name": "symmetric", "rate": 0.4}


def balanced_labels(num_classes, size=20_000):
    return numpy.random.default_rng(0).permutation(numpy.arange(size) % num_classes)


@pytest.mark.parametrize("name", NOISES.entries)
def test_every_listed_noise_has_an_example(name):
    assert name in EXAMPLES, f"noise {name} is listed, but has no parameters in EXAMPLES of {__file__}"


@pytest.mark.parametrize("num_classes", [2, 10, 100])
@EVERY_NOISE
def test_rows_of_the_transition_matrix_are_probabilities(noise, num_classes):
    transition = transition_matrix(noise, num_classes)
    assert transition.shape == (num_classes, num_classes)
    assert (transition >= 0).all()
    numpy.testing.assert_allclose(transition.sum(1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("num_classes", [2, 10])
@EVERY_NOISE
def test_realised_transitions_are_within_four_standard_errors(noise, num_classes, seed):
    true = balanced_labels(num_classes)
    observed = corrupt(true, noise, num_classes, seed)
    counts = numpy.zeros((num_classes, num_classes))
    numpy.add.at(counts, (true, observed), 1)
    seen = counts.sum(1, keepdims=True)
    wanted = transition_matrix(noise, num_classes)
    error = numpy.sqrt(wanted.clip(0, 1) * (1 - wanted).clip(0, 1) / seen)
    assert (abs(counts / seen - wanted) <= 4 * error + 1e-12).all()


@EVERY_NOISE
def test_observed_labels_are_classes_and_the_true_labels_stay_as_they_are(noise):
    true = balanced_labels(7)
    before = true.copy()
    observed = corrupt(true, noise, 7, seed=0)
    assert observed.dtype == true.dtype
    assert observed.shape == true.shape
    assert set(observed.tolist()) <= set(range(7))
    assert numpy.array_equal(true, before)
    assert not numpy.shares_memory(true, observed)


@EVERY_NOISE
def test_draws_depend_on_noise_and_seed_alone(noise):
    true = balanced_labels(10)
    wanted = [corrupt(true, noise, 10, seed) for seed in range(3)]
    for seed in (2, 0, 1, 1):
        numpy.random.seed(seed + 17)
        torch.manual_seed(seed + 17)
        random.seed(seed + 17)
        assert numpy.array_equal(corrupt(true, noise, 10, seed), wanted[seed])
    read_only = true.copy()
    read_only.flags.writeable = False
    assert numpy.array_equal(corrupt(read_only, NOISES.choose(noise), 10, 0), wanted[0])


def test_drawing_noise_leaves_the_global_generators_alone():
    torch_before, numpy_before, before = torch.get_rng_state(), numpy.random.get_state()[1].copy(), random.getstate()
    corrupt(balanced_labels(10), SYMMETRIC, 10, seed=0)
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert numpy.array_equal(numpy.random.get_state()[1], numpy_before)
    assert random.getstate() == before


def test_none_is_identity():
    true = balanced_labels(10)
    assert numpy.array_equal(transition_matrix("none", 10), numpy.eye(10))
    assert numpy.array_equal(corrupt(true, "none", 10, seed=3), true)


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.4, 0.6, 0.9, 1.0])
def test_symmetric_corrupts_the_stated_share_and_never_redraws_the_true_label(num_classes, rate):
    transition = transition_matrix({"name": "symmetric", "rate": rate}, num_classes)
    off_diagonal = transition[~numpy.eye(num_classes, dtype=bool)]
    numpy.testing.assert_allclose(transition.diagonal(), 1 - rate, rtol=0, atol=1e-15)
    numpy.testing.assert_allclose(off_diagonal, rate / (num_classes - 1), rtol=1e-15)
    true = balanced_labels(num_classes)
    share = (corrupt(true, {"name": "symmetric", "rate": rate}, num_classes, seed=0) != true).mean()
    assert abs(share - rate) <= 4 * math.sqrt(rate * (1 - rate) / len(true))


def test_draws_of_different_seeds_are_independent():
    true = balanced_labels(10)
    wrong = {seed: corrupt(true, SYMMETRIC, 10, seed) for seed in range(6)}
    for one, other in itertools.combinations(wrong, 2):
        both = [wrong[seed] != true for seed in (one, other)]
        assert abs(numpy.corrcoef(*both)[0, 1]) < 4 / math.sqrt(len(true))
        # Where both are wrong, they agree on the wrong class one time in nine.
        pair = both[0] & both[1]
        agreement = (wrong[one] == wrong[other])[pair].mean()
        assert abs(agreement - 1 / 9) < 4 * math.sqrt(1 / 9 * 8 / 9 / pair.sum())


def test_whether_a_label_is_wrong_does_not_depend_on_its_neighbours():
    true = balanced_labels(10)
    wrong = corrupt(true, SYMMETRIC, 10, seed=0) != true
    for lag in (1, 2, 10, 128):
        assert abs(numpy.corrcoef(wrong[lag:], wrong[:-lag])[0, 1]) < 4 / math.sqrt(len(true))


def test_a_label_that_is_no_class_is_refused():
    with pytest.raises(ValueError, match="10"):
        corrupt(numpy.array([0, 1, 10]), "none", 10, seed=0)
