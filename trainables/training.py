"""One training, read top to bottom: data, network, loss; then an epoch at a time, each followed by what it changed."""

import math
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch import Tensor

from trainables import probes
from trainables.datasets import Dataset
from trainables.losses import build_loss
from trainables.models import build_model
from trainables.optimizers import OPTIMIZERS, learning_rate
from trainables.splits import split
from trainables.streams import torch_stream
from trainables.trial import Trial

EVALUATION_BATCH = 256


class Diverged(ArithmeticError):
    """The loss is no longer a number."""


class Training:
    """`epoch()` trains one epoch and returns its metrics; `state_dict()` is all that the next epoch depends on."""

    def __init__(self, trial: Trial, dataset: Dataset, device: str = "cpu"):
        self.trial = trial
        self.device = torch.device(device)
        self.epochs_done = 0
        self.num_classes = dataset.num_classes
        self.splits = split(trial, dataset)
        self.images = _tensor(dataset.train_images, self.device)
        self.observed = _tensor(self.splits.observed, self.device)
        self.true = _tensor(dataset.train_labels, self.device)
        self.test_images = _tensor(dataset.test_images, self.device)
        self.test_labels = _tensor(dataset.test_labels, self.device)
        self.train, self.valid = _tensor(self.splits.train, self.device), _tensor(self.splits.valid, self.device)
        self.corrupted = self.observed != self.true
        self.mean, self.std = (torch.tensor(v, device=self.device).view(1, -1, 1, 1) for v in (dataset.mean, dataset.std))

        # Keyed without the loss: every loss must meet the same initial weights and the same batches.
        initial = torch_stream("init", trial.dataset.canonical, trial.model.canonical, trial.seed)
        self.order = torch_stream("order", trial.dataset.canonical, trial.seed)
        self.model = build_model(trial.model, dataset.image_shape, dataset.num_classes, initial).to(self.device)
        self.loss = build_loss(trial.loss, dataset.num_classes, trial.unit_max)
        self.optimizer = OPTIMIZERS.build(trial.optimizer, self.model.parameters())
        self.weights = probes.WeightProbe(self.device)
        self.initial_margins = probes.margin_histogram(self._look_at_training_set().margin)
        self.best_test_accuracy = self.final_test_accuracy = -math.inf

    @property
    def finished(self) -> bool:
        return self.epochs_done >= self.trial.epochs

    def facts(self) -> dict[str, Any]:
        """What is settled before the first step."""
        return {
            "realised_noise_rate": self.corrupted[self.train].double().mean().item(),
            "observed_labels_sha256": self.splits.observed_sha256,
            "initial_margins": {**self.initial_margins, "num_classes": self.num_classes},
        }

    def epoch(self) -> dict[str, float]:
        lr = learning_rate(self.trial.optimizer, self.trial.schedule, self.epochs_done, self.trial.epochs)
        started = time.perf_counter()
        mean_loss = self._train(lr)
        seconds = time.perf_counter() - started
        self.epochs_done += 1
        if not math.isfinite(mean_loss):
            raise Diverged(f"the loss became {mean_loss} in epoch {self.epochs_done}")
        metrics = {"train_loss": mean_loss, "learning_rate": lr, "samples_per_second": len(self.train) / seconds}
        metrics |= self.weights.metrics()
        if self.finished or self.epochs_done % self.trial.evaluate_every == 0:
            metrics |= self.evaluate()
        return metrics

    def _train(self, lr: float) -> float:
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        order = torch.randperm(len(self.train), generator=self.order).to(self.device)
        for batch in self.train[order].split(self.trial.batch_size):
            logits = self.model(self._normalised(self.images[batch]))
            logits.retain_grad()
            losses = self.loss(logits, self.observed[batch])
            self.optimizer.zero_grad(set_to_none=True)
            losses.mean().backward()
            self.optimizer.step()
            total += losses.detach().sum()
            assert logits.grad is not None
            weight = logits.grad.abs().sum(1) * (len(batch) / 2 / self.loss.scale)
            self.weights.observe(weight, self.corrupted[batch], lr)
        return (total / len(self.train)).item()

    def evaluate(self) -> dict[str, float]:
        """Test accuracy, fit of right and of wrong training labels, and the noisy validation set, all in percent."""
        train, observed = self._look_at_training_set(), self.observed[self.train]
        true, corrupted = self.true[self.train], self.corrupted[self.train]
        valid = self._look_at(self.images[self.valid], self.observed[self.valid]) if len(self.valid) else None
        test = self._look_at(self.test_images, self.test_labels)
        if not torch.isfinite(train.margin).all():
            raise Diverged(f"the network's scores are no longer finite after epoch {self.epochs_done}")
        found = {
            "test_accuracy": probes.accuracy(test.predicted, self.test_labels),
            "train_clean_accuracy": probes.accuracy(train.predicted[~corrupted], observed[~corrupted]),
            "train_corrupted_fit": probes.accuracy(train.predicted[corrupted], observed[corrupted]),
            "hybrid_accuracy": probes.accuracy(
                torch.cat([test.predicted, train.predicted]), torch.cat([self.test_labels, true])
            ),
            "corruption_auc": probes.corruption_auc(train.margin, corrupted),
            "valid_noisy_accuracy": probes.accuracy(valid.predicted, self.observed[self.valid]) if valid else None,
            "valid_noisy_mae": probes.mae(valid.margin) if valid else None,
        }
        metrics = {name: value for name, value in found.items() if value is not None}
        self.final_test_accuracy = metrics["test_accuracy"]
        self.best_test_accuracy = max(self.best_test_accuracy, self.final_test_accuracy)
        return metrics

    def summary(self) -> dict[str, float]:
        return {"test_accuracy_best": self.best_test_accuracy, "test_accuracy_final": self.final_test_accuracy}

    def state_dict(self) -> dict[str, Any]:
        return {
            "epochs_done": self.epochs_done,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "order": self.order.get_state(),
            "weights": self.weights.state_dict(),
            "test_accuracy": (self.best_test_accuracy, self.final_test_accuracy),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epochs_done = state["epochs_done"]
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.order.set_state(state["order"].cpu())  # the rest may live on a GPU
        self.weights.load_state_dict(state["weights"])
        self.best_test_accuracy, self.final_test_accuracy = state["test_accuracy"]

    def _look_at_training_set(self) -> probes.Predictions:
        return self._look_at(self.images[self.train], self.observed[self.train])

    def _look_at(self, images: Tensor, labels: Tensor) -> probes.Predictions:
        self.model.eval()
        return probes.predict(self.model, list(self._batches(images, labels)))

    def _batches(self, images: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        for x, y in zip(images.split(EVALUATION_BATCH), labels.split(EVALUATION_BATCH), strict=True):
            yield self._normalised(x), y

    def _normalised(self, images: Tensor) -> Tensor:
        return images.float().sub_(self.mean).div_(self.std)


def _tensor(array: numpy.ndarray[Any, Any], device: torch.device) -> Tensor:
    with warnings.catch_warnings():
        # Arrays out of Ray's object store are read-only, and so do we treat them.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array).to(device)
