"""A launch that is killed or stopped in the middle ends, when run again, as one that never was."""

import signal
import subprocess
import time
from pathlib import Path

import pandas

from analysis import runs
from tests.study.conftest import client, kill, metrics_of, wait_until

# The demo, but small enough for a test; a checkpoint after every epoch, so that trials are resumed in the middle.
DEMO = ("demo", "--set", "dataset=digits", "--set", "epochs=12", "--set", "seeds=1", "--checkpoint-seconds", "0")


def test_killed_and_run_again_equals_never_killed(home, tmp_path, start, monkeypatch):
    process = start("run", *DEMO)
    wait_until(lambda: _finished(process, home) >= 2 and _half_done(home) >= 1, process)
    kill(process)
    interrupted = runs("demo")
    assert "running" in set(interrupted["status"])

    again = start("run", *DEMO)
    output, errors = again.communicate(timeout=300)
    assert again.returncode == 0, output + errors
    _check_every_trial_once(home)
    assert _resumed(home) >= 1

    monkeypatch.setenv("TAUTUNE_HOME", str(tmp_path / "quiet"))
    quiet = start("run", *DEMO)
    assert quiet.wait(timeout=300) == 0
    pandas.testing.assert_frame_equal(metrics_of(home, "demo"), metrics_of(tmp_path / "quiet", "demo"), check_exact=True)


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(home, start):
    process = start("run", *DEMO)
    wait_until(lambda: _half_done(home) >= 1, process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; go on with: tautune run demo" in output
    assert "running" not in set(runs("demo")["status"])

    again = start("run", *DEMO)
    assert again.wait(timeout=300) == 0
    _check_every_trial_once(home)

    started = time.monotonic()
    done = subprocess.run(again.args, capture_output=True, text=True, check=True)
    assert "nothing to do, 12 of 12 trials are finished" in done.stdout
    assert time.monotonic() - started < 60


def _finished(process: subprocess.Popen[str], home: Path) -> int:
    if not (home / "mlflow.db").exists():
        return 0
    recorded = runs("demo")
    return int((recorded["status"] == "finished").sum())


def _half_done(home: Path) -> int:
    return len(list((home / "checkpoints").glob("*.pt")))


def _resumed(home: Path) -> int:
    store = client(home)
    experiment = store.get_experiment_by_name("demo")
    return len(store.search_runs([experiment.experiment_id], "tags.resumed_from_epoch != ''"))


def _check_every_trial_once(home: Path) -> None:
    recorded = runs("demo")
    assert len(recorded) == recorded["trial_id"].nunique() == 12
    assert set(recorded["status"]) == {"finished"}
    written = metrics_of(home, "demo")
    assert not written.duplicated(["trial_id", "metric", "step"]).any(), "a metric step is written twice"
    store = client(home)
    running = store.search_runs([store.get_experiment_by_name("demo").experiment_id], "attributes.status = 'RUNNING'")
    assert list(running) == []
