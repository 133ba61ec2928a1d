"""`run`, with a real Ray and a real MLflow store."""

import json

import pytest

from analysis import runs
from study import load, plan, run
from study.runner import Options, carry_out
from tests.study.conftest import client

DESIGNED_METRICS = {
    "test_accuracy",
    "valid_noisy_accuracy",
    "valid_noisy_mae",
    "train_clean_accuracy",
    "hybrid_accuracy",
    "alpha",
    "alpha_table2",
    "weight_clean",
    "realised_noise_rate",
    "learning_rate",
    "samples_per_second",
    "test_accuracy_best",
    "test_accuracy_final",
}
NOISY_METRICS = {"train_corrupted_fit", "weight_corrupted", "weight_snr", "corruption_auc"}


def test_a_study_is_recorded_as_designed_and_a_grown_one_runs_only_what_is_new(small, home):
    frame = run(load(small))
    assert len(frame) == 4
    assert set(frame["status"]) == {"finished"}
    _check_launch(home, trials=4)
    _check_trial_runs(home)

    again = carry_out(load(small), Options())
    assert (again.before.to_run, again.finished, again.failures) == ([], [], {})
    assert len(_launches(home)) == 1, "a launch with nothing to do leaves no trace"

    before = runs("small").set_index("trial_id")["run_id"]
    grown = carry_out(load(small, ["seeds=2"]), Options())
    assert len(grown.finished) == 4
    after = runs("small").set_index("trial_id")["run_id"]
    assert len(after) == 8
    assert (after[before.index] == before).all(), "what was there stays as it was"
    assert not list((home / "checkpoints").glob("*")), "a recorded trial keeps no checkpoint"


def _launches(home):
    store = client(home)
    experiment = store.get_experiment_by_name("small")
    return [run for run in store.search_runs([experiment.experiment_id]) if "trial_id" not in run.data.tags]


def _check_launch(home, trials):
    (launch,) = _launches(home)
    assert launch.info.status == "FINISHED"
    assert launch.data.tags["about"] == "A study of seconds"
    children = client(home).search_runs([launch.info.experiment_id], f"tags.mlflow.parentRunId = '{launch.info.run_id}'")
    assert len(children) == trials


def _check_trial_runs(home):
    store = client(home)
    experiment = store.get_experiment_by_name("small")
    found = [run for run in store.search_runs([experiment.experiment_id]) if "trial_id" in run.data.tags]
    for record in found:
        tags, params = record.data.tags, record.data.params
        config = json.loads(tags["config"])
        assert {"study", "trial_id", "cell", "seed", "git_commit", "git_dirty", "versions", "hardware"} <= set(tags)
        assert len(tags["observed_labels_sha256"]) == 64
        assert params["loss.name"] == config["loss"]["name"]
        assert params["optimizer.lr"] == "0.05"
        noisy = config["noise"]["name"] == "symmetric"
        assert set(record.data.metrics) >= DESIGNED_METRICS | (NOISY_METRICS if noisy else set())
        assert record.data.metrics["realised_noise_rate"] == pytest.approx(0.4 if noisy else 0, abs=0.05)
        assert record.info.run_name.startswith(f"{config['loss']['name']} | {config['noise']['name']}")
        assert {item.path for item in store.list_artifacts(record.info.run_id)} == {"initial_margins.json"}
        steps = [point.step for point in store.get_metric_history(record.info.run_id, "test_accuracy")]
        assert steps == [1, 2]


def test_a_trial_that_fails_fails_alone_and_can_be_tried_again(small, home, monkeypatch):
    wild = ["loss=[ce, {name: mae}]", "noise=none", "optimizer=[{name: sgd, lr: 0.05}, {name: sgd, lr: 1e30}]"]
    outcome = carry_out(load(small, wild), Options())
    assert len(outcome.finished) == 2
    ((cause, count),) = outcome.failures_by_cause.items()
    assert count == 2
    assert cause.startswith("Diverged: the loss became")

    recorded = runs("small")
    failed = recorded[recorded["status"] == "failed"]
    assert set(failed["failure"]) == {cause}
    text = client(home).list_artifacts(failed["run_id"].iloc[0])
    assert "traceback.txt" in {item.path for item in text}

    skipped = carry_out(load(small, wild), Options())
    assert skipped.before.to_run == []
    assert len(skipped.before.failed) == 2

    retried = carry_out(load(small, wild), Options(retry_failed=True, fail_fast=True))
    assert 1 <= len(retried.failures) <= 2
    assert retried.reason.startswith("stopped at the first failure: Diverged")
    assert len(runs("small")) == 4, "a trial that is tried again is still one run"


def test_the_python_calls_of_the_design_work(small):
    study = load(small)
    assert plan(study)[0].label == "ce | none | digits | seed 0"
    assert runs("small").empty
