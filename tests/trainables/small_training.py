"""A training small enough for tests, watched and counted by hand."""

import pytest
import torch

from tests.trainables.published_losses import SETTINGS
from trainables.losses import MARGIN_LOSSES

ALL_LOSSES = [{"name": name} | SETTINGS.get(name, [{}])[-1] for name in MARGIN_LOSSES]
EVERY_LOSS = pytest.mark.parametrize("loss", ALL_LOSSES, ids=lambda loss: loss["name"])
WEIGHTS = {"alpha", "alpha_table2", "weight_clean", "weight_corrupted", "weight_snr"}
ABOUT_CORRUPTED = {"weight_corrupted", "weight_snr", "train_corrupted_fit", "corruption_auc"}
ABOUT_VALID = {"valid_noisy_accuracy", "valid_noisy_mae"}
EVALUATED = {"test_accuracy", "train_clean_accuracy", "train_corrupted_fit", "hybrid_accuracy", "corruption_auc"} | ABOUT_VALID
TRAINED = WEIGHTS | {"learning_rate", "samples_per_second", "train_loss"}


def finish(training):
    """The metrics of all epochs that are left, without the one that is a matter of the clock."""
    history = []
    while not training.finished:
        metrics = training.epoch()
        assert metrics.pop("samples_per_second") > 0
        history.append(metrics)
    return history


def weights(training):
    return {name: tensor.clone() for name, tensor in training.model.state_dict().items()}


def assert_identical(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def record_steps(training):
    """Every (input, output) of the network in training mode, from now on."""
    steps = []

    def hook(model, inputs, logits):
        if model.training:
            steps.append((inputs[0].detach().clone(), logits.detach().clone()))

    training.model.register_forward_hook(hook)
    return steps


def scores(training, images, digits):
    """One image at a time, normalised by hand."""
    training.model.eval()
    with torch.no_grad():
        inputs = (torch.from_numpy(images).double() - digits.mean[0]) / digits.std[0]
        return torch.cat([training.model(image[None].float()) for image in inputs])
