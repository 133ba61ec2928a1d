"""A study on a Ray cluster that is already running, started here on loopback with one GPU that exists on paper only."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from study import load
from study.runner import Options, carry_out
from tests.study.conftest import client

RAY = Path(sys.executable).with_name("ray")


@pytest.fixture
def cluster(tmp_path, monkeypatch) -> Iterator[str]:
    # A token in this HOME would be asked for later by whoever starts a cluster from it.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sessions = Path(f"/tmp/tautune-test-{port}")
    command = [
        RAY,
        "start",
        "--head",
        "--block",
        "--node-ip-address=127.0.0.1",
        f"--port={port}",
        "--num-cpus=2",
        "--num-gpus=1",
    ]
    quiet = ["--include-dashboard=false", "--disable-usage-stats", f"--temp-dir={sessions}"]
    process = subprocess.Popen([*command, *quiet], stdout=subprocess.DEVNULL, start_new_session=True)
    yield f"127.0.0.1:{port}"
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(sessions, ignore_errors=True)


def test_a_running_cluster_packs_four_trials_on_a_gpu(cluster, small, home):
    study = load(small, ["epochs=30", "gpus=0.25", "cpus=0.25"])
    outcome = carry_out(study, Options(address=cluster))
    assert len(outcome.finished) == 4
    store = client(home)
    experiment = store.get_experiment_by_name("small")
    spans = [run.info for run in store.search_runs([experiment.experiment_id]) if "trial_id" in run.data.tags]
    assert max(span.start_time for span in spans) < min(span.end_time for span in spans), "all four ran at the same time"
