"""Which images a trial trains on, with which observed labels, and which it holds back as noisy validation set."""

import hashlib
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from trainables.datasets import Dataset, Labels
from trainables.noise import corrupt
from trainables.streams import numpy_stream
from trainables.trial import Trial

Index = NDArray[numpy.int64]


@dataclass(frozen=True)
class Splits:
    """`train` and `valid` are disjoint indices into the training images; `observed` has a label for all of these."""

    train: Index
    valid: Index
    observed: Labels

    @property
    def observed_sha256(self) -> str:
        # MLflow's own data set digest looks at the first 10,000 elements only.
        return hashlib.sha256(self.observed.astype("<i8").tobytes()).hexdigest()


def split(trial: Trial, dataset: Dataset) -> Splits:
    observed = corrupt(dataset.train_labels, trial.noise, dataset.num_classes, trial.seed)
    order = numpy_stream("split", trial.dataset.canonical, trial.seed).permutation(len(observed))
    held_back = round(trial.valid_share * len(observed))
    return Splits(train=numpy.sort(order[held_back:]), valid=numpy.sort(order[:held_back]), observed=observed)
