"""A small study, a home of its own, and ways to run one against the other with the real parts."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas
import pytest
from mlflow import MlflowClient

TAUTUNE = Path(sys.executable).with_name("tautune")
TIMINGS = ["samples_per_second"]

SMALL = """
    study: small
    about: A study of seconds
    dataset: digits
    model: {name: small_cnn, width: 4, hidden: 32}
    noise: [none, {name: symmetric, rate: 0.4}]
    loss: [ce, mae]
    optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
    schedule: cosine
    epochs: 2
    batch_size: 64
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("TAUTUNE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def small(tmp_path: Path, home: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(textwrap.dedent(SMALL))
    return path


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `tautune ...`; whatever still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str | Path) -> subprocess.Popen[str]:
        command = [str(TAUTUNE), *map(str, arguments)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"the launch ended too early: {process.communicate()}"
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def kill(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def client(home: Path) -> MlflowClient:
    return MlflowClient(tracking_uri=f"sqlite:///{home / 'mlflow.db'}")


def metrics_of(home: Path, study: str) -> pandas.DataFrame:
    """Every metric that was ever written: trial, metric, step, value; but for the clock's."""
    store = client(home)
    experiment = store.get_experiment_by_name(study)
    rows = []
    for run in store.search_runs([experiment.experiment_id], max_results=1000):
        for metric in run.data.metrics:
            history = store.get_metric_history(run.info.run_id, metric)
            rows += [(run.data.tags.get("trial_id"), metric, point.step, point.value) for point in history]
    frame = pandas.DataFrame(rows, columns=["trial_id", "metric", "step", "value"])
    return frame[~frame["metric"].isin(TIMINGS)].sort_values(["trial_id", "metric", "step"]).reset_index(drop=True)
