"""The one Trainable: a trial, an epoch a step, for Ray Tune to run and to reuse for the next trial."""

import os
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ray
import torch
from ray.tune import Trainable

from trainables import checkpoints
from trainables.hardware import describe_device
from trainables.training import Training
from trainables.trial import Trial


@dataclass(frozen=True)
class Surroundings:
    """What all trials of a launch share. Data sets are references into Ray's object store: one copy a node."""

    datasets: Mapping[str, Any]
    checkpoint_folder: str
    checkpoint_seconds: float
    cpus: float
    gpus: float


class TrialTrainable(Trainable):  # type: ignore[misc]  # ray is untyped
    """Reports `epochs`: the metrics of every epoch since the last report; after a resume, of all epochs so far.

    An error of the trial itself is a result (`failure`), not an exception: Ray then has nothing to retry, and its retries are
    left for lost workers and nodes. After such a loss, or in a new launch, a trial continues from its own checkpoint.
    """

    training: Training | None  # made in the first step, where an error belongs to the trial

    def setup(self, config: dict[str, Any], surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.device = torch.device("cuda" if surroundings.gpus > 0 and torch.cuda.is_available() else "cpu")
        torch.set_num_threads(max(1, int(surroundings.cpus)))
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS may sum in another order
        torch.use_deterministic_algorithms(True, warn_only=True)
        self._await(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self._await(new_config)
        return True

    def step(self) -> dict[str, Any]:
        try:
            return self._step()
        except Exception as error:
            self.training = None
            cause = f"{type(error).__name__}: {error}".splitlines()[0]
            return {"done": True, "epochs": self._unreported(), "failure": cause, "traceback": traceback.format_exc()}

    def _await(self, config: dict[str, Any]) -> None:
        self.trial = Trial.from_config(config["trial"])
        self.training = None
        self.history: list[dict[str, float]] = []
        self.reported = 0

    def _step(self) -> dict[str, Any]:
        result: dict[str, Any] = {}
        if self.training is None:
            self.training = self._resumed()
            result["facts"] = {
                **self.training.facts(),
                "hardware": describe_device(self.device),
                "resumed_from_epoch": self.training.epochs_done,
            }
        training = self.training
        metrics = training.epoch()
        self.history.append({"epoch": training.epochs_done, "timestamp": time.time(), **metrics})
        self._save_when_due(training)
        result |= {"epochs": self._unreported(), "done": training.finished}
        if training.finished:
            result["summary"] = training.summary()
        return result

    def _unreported(self) -> list[dict[str, float]]:
        rows = self.history[self.reported :]
        self.reported = len(self.history)
        return rows

    def _resumed(self) -> Training:
        dataset = ray.get(self.surroundings.datasets[self.trial.dataset.canonical])
        training = Training(self.trial, dataset, str(self.device))
        state = checkpoints.load(self.surroundings.checkpoint_folder, self.trial.id, self.device)
        if state is not None:
            training.load_state_dict(state["training"])
            self.history = state["history"]
        self.saved_at, self.save_cost = time.monotonic(), 0.0
        return training

    def _save_when_due(self, training: Training) -> None:
        """Every so many seconds, and never for more than a twentieth of the time."""
        now = time.monotonic()
        pause = max(self.surroundings.checkpoint_seconds, 20 * self.save_cost)
        if training.finished or now - self.saved_at < pause:
            return
        state = {"training": training.state_dict(), "history": self.history}
        checkpoints.save(self.surroundings.checkpoint_folder, self.trial.id, state)
        self.saved_at = time.monotonic()
        self.save_cost = self.saved_at - now
