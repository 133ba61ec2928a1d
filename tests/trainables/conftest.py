"""What the tests of trainables share: one core, the digits, and a trial small enough to train in a tenth of a second."""

from typing import Any

import pytest
import torch

from trainables.datasets import Dataset, load_dataset
from trainables.training import Training
from trainables.trial import DEFAULTS, Trial

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def digits() -> Dataset:
    return load_dataset("digits")


@pytest.fixture(scope="session")
def config() -> dict[str, Any]:
    """Every axis of a small trial; tests override what they are about."""
    return DEFAULTS | {
        "dataset": "digits",
        "model": {"name": "small_cnn", "width": 4, "hidden": 32},
        "noise": {"name": "symmetric", "rate": 0.4},
        "loss": "ce",
        "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 1e-4},
        "schedule": "cosine",
        "epochs": 3,
    }


@pytest.fixture
def start(config, digits):
    """A fresh training of the small trial, with what a test changes about it."""
    return lambda **changes: Training(Trial.from_config(config | changes), digits)
