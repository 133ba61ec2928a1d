"""From a study to its trials, and what is left of them to do."""

import itertools
import math
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas

from study.definition import STUDY_AXES, Grid, Study
from trainables.trial import Trial


def plan(study: Study) -> list[Trial]:
    """All trials of a study, each once, seed by seed: the first results already cover every cell."""
    unique = {trial.id: trial for grid in study.grids for trial in _expand(grid)}
    return sorted(unique.values(), key=lambda trial: trial.seed)


def _expand(grid: Grid) -> Iterator[Trial]:
    axes = ("seed", *STUDY_AXES)
    for values in itertools.product(*(grid[axis] for axis in axes)):
        yield Trial(**dict(zip(axes, values, strict=True)))


@dataclass(frozen=True)
class Progress:
    """The trials of a study by what the store says of them. `to_run` includes those that were begun and interrupted."""

    done: list[Trial]
    failed: list[Trial]
    to_run: list[Trial]

    @property
    def total(self) -> int:
        return len(self.done) + len(self.failed) + len(self.to_run)


def progress(trials: Sequence[Trial], recorded: pandas.DataFrame, retry_failed: bool = False) -> Progress:
    status = dict(zip(recorded["trial_id"], recorded["status"], strict=True))
    found = Progress([], [], [])
    for trial in trials:
        state = status.get(trial.id)
        if state == "finished":
            found.done.append(trial)
        elif state == "failed" and not retry_failed:
            found.failed.append(trial)
        else:
            found.to_run.append(trial)
    return found


def at_once(cpus: float) -> int:
    """How many trials this machine runs side by side."""
    return max(1, math.floor((os.cpu_count() or 1) / cpus + 1e-9))  # 2 // 0.1 is 19


def estimated_seconds(to_run: Sequence[Trial], recorded: pandas.DataFrame, at_once: int) -> float | None:
    """From the median time of an epoch in past runs on the same data and network; None without any such run."""
    if "seconds" not in recorded or recorded.empty:
        return None
    finished = recorded[recorded["status"] == "finished"]
    epoch_seconds = (finished["seconds"] / finished["epochs"]).groupby([finished["dataset"], finished["model"]]).median()
    if epoch_seconds.empty:
        return None
    usual = statistics.median(epoch_seconds)
    known = epoch_seconds.to_dict()
    return sum(trial.epochs * known.get((trial.dataset.label, trial.model.label), usual) for trial in to_run) / at_once
