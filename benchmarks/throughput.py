"""Trials per second of `tautune run` against bare Ray Tune and against one Python process a trial, all in one run.

All three train the same 200 trials of a few milliseconds each; the variants are interleaved, and the ratio is of medians.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TRIALS = 200
ROUNDS = 3
PROCESSES = 6  # enough to know what a process costs
STUDY = f"""
study: throughput
dataset: {{name: digit_pairs, train: 100, test: 100}}
model: {{name: small_cnn, width: 1, hidden: 8}}
loss: ce
optimizer: {{name: sgd, lr: 0.1}}
epochs: 1
batch_size: 512
seeds: {TRIALS}
"""
ONE_TRIAL = """
import sys, torch
from study import load, plan
from trainables.datasets import load_dataset
from trainables.training import Training
torch.set_num_threads(1)
trial = plan(load(sys.argv[1]))[int(sys.argv[2])]
training = Training(trial, load_dataset(trial.dataset))
while not training.finished:
    training.epoch()
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tautune-bench-") as folder:
        study_file = Path(folder) / "throughput.yaml"
        study_file.write_text(STUDY)
        start_up = _ray_start_up()
        bare, ours = [], []
        for turn in range(ROUNDS):
            bare.append(_bare_tune(study_file))
            ours.append(_tautune(study_file, Path(folder) / "home", first_seed=TRIALS * turn))
        process = _process_a_trial(study_file)
    print(f"milliseconds of one trial itself: {1000 * _trial_seconds():.1f}; start-up of Ray: {start_up:.1f} s")
    _line("bare Ray Tune, class API, reuse_actors, no logging", bare, start_up)
    _line("tautune run, every trial recorded in MLflow", ours, start_up)
    print(f"{'one Python process a trial, two at once':55s} {1 / process:6.1f} trials/s")
    with_start, without = _ratio(bare, ours, 0.0), _ratio(bare, ours, start_up)
    print(f"tautune / bare Ray Tune: {without:.2f} without Ray's start-up, {with_start:.2f} with it (goal: 0.5)")
    print(f"tautune / one process a trial: {TRIALS / statistics.median(ours) * process:.1f} (goal: 10)")


def _line(name: str, seconds: list[float], start_up: float) -> None:
    rates = [TRIALS / (value - start_up) for value in seconds]
    print(f"{name:55s} {statistics.median(rates):6.1f} trials/s  ({', '.join(f'{rate:.1f}' for rate in rates)})")


def _ratio(bare: list[float], ours: list[float], start_up: float) -> float:
    return (statistics.median(bare) - start_up) / (statistics.median(ours) - start_up)


def _ray_start_up() -> float:
    import ray

    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ray.shutdown()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def _bare_tune(study_file: Path) -> float:
    """The same trials in the shortest Tune program that could run them."""
    import ray
    from ray import tune

    from study import load, plan
    from trainables.datasets import load_dataset
    from trainables.training import Training
    from trainables.trial import Trial

    class Bare(tune.Trainable):  # type: ignore[misc]
        def setup(self, config: dict[str, Any], dataset: Any) -> None:
            import torch

            torch.set_num_threads(1)
            self.dataset = dataset
            self.reset_config(config)

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            self.training: Training | None = None
            self.trial = new_config["trial"]
            return True

        def step(self) -> dict[str, Any]:
            training = self.training = self.training or Training(Trial.from_config(self.trial), self.dataset)
            return {**training.epoch(), "done": training.finished}

    trials = plan(load(study_file))
    started = time.perf_counter()
    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    with tempfile.TemporaryDirectory(prefix="tautune-bench-") as folder:
        trainable = tune.with_parameters(Bare, dataset=load_dataset(trials[0].dataset))
        tuner = tune.Tuner(
            tune.with_resources(trainable, {"cpu": 1}),
            param_space={"trial": tune.grid_search([trial.config for trial in trials])},
            tune_config=tune.TuneConfig(reuse_actors=True),
            run_config=tune.RunConfig(
                storage_path=folder, verbose=0, checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False)
            ),
        )
        assert not tuner.fit().errors
    ray.shutdown()
    return time.perf_counter() - started


def _tautune(study_file: Path, home: Path, first_seed: int) -> float:
    """Into one store, as a person would: other seeds each time, so that nothing is there already."""
    from study import load
    from study.runner import Options, carry_out

    os.environ["TAUTUNE_HOME"] = str(home)
    started = time.perf_counter()
    outcome = carry_out(load(study_file, [f"seeds={list(range(first_seed, first_seed + TRIALS))}"]), Options())
    seconds = time.perf_counter() - started
    assert len(outcome.finished) == TRIALS
    return seconds


def _process_a_trial(study_file: Path) -> float:
    """Seconds a trial with two processes side by side, as many as there are cores here."""
    started = time.perf_counter()
    for first in range(0, PROCESSES, 2):
        commands = [[sys.executable, "-c", ONE_TRIAL, str(study_file), str(first + offset)] for offset in range(2)]
        for process in [subprocess.Popen(command) for command in commands]:
            assert process.wait() == 0
    return (time.perf_counter() - started) / PROCESSES


def _trial_seconds() -> float:
    import torch

    from study.definition import load
    from study.planning import plan
    from trainables.datasets import load_dataset
    from trainables.training import Training

    torch.set_num_threads(1)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(STUDY)
        file.flush()
        trials = plan(load(file.name))[:20]
    dataset = load_dataset(trials[0].dataset)
    Training(trials[0], dataset).epoch()
    started = time.perf_counter()
    for trial in trials:
        Training(trial, dataset).epoch()
    return (time.perf_counter() - started) / len(trials)


if __name__ == "__main__":
    main()
