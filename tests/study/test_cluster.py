"""A study on a Ray cluster that is already running, started here on loopback with one GPU that exists on paper only."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    _wait_for(port)
    yield f"127.0.0.1:{port}"
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(sessions, ignore_errors=True)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.2)
    raise TimeoutError("the cluster did not start")


def test_an_address_where_no_cluster_answers_is_one_sentence(small, home, start):
    process = start("run", small, "--address", "127.0.0.1:1")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors == "no Ray cluster answers at 127.0.0.1:1: Connection refused\n"


def test_a_running_cluster_packs_four_trials_on_a_gpu(cluster, small, home, start):
    # A process of its own: Ray keeps the first way of authentication it has met for as long as a process lives.
    # Long enough for the first trial to be still there when the last of four workers, on two cores, has imported torch.
    longer = ["--set", "epochs=400", "--set", "evaluate_every=400"]
    process = start("run", small, *longer, "--gpus", "0.25", "--cpus", "0.25", "--address", cluster)
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, output + errors
    assert "small: 4 of 4 trials finished, 0 failed" in output
    store = client(home)
    experiment = store.get_experiment_by_name("small")
    spans = [run.info for run in store.search_runs([experiment.experiment_id]) if "trial_id" in run.data.tags]
    assert max(span.start_time for span in spans) < min(span.end_time for span in spans), "all four ran at the same time"
