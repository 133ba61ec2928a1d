"""The reader of runs: what MLflow holds of a study, as data frames. The only reading that imports MLflow."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas

from analysis.home import Store, StoreFailed, store
from trainables.trial import AXES, MENUS, Trial

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
SUMMARIES = {"test_accuracy_best", "test_accuracy_final", "realised_noise_rate"}  # written once a run, at step 0
COLUMNS = ["run_id", "status", "trial_id", "cell", *AXES, "seconds", "failure", "git_commit"]  # then the metrics
LAUNCHES, TRIALS = "tags.kind = 'launch'", "tags.kind = 'trial'"  # as the writer tags them
STATUS = {"FINISHED": "finished", "FAILED": "failed", "RUNNING": "running", "KILLED": "interrupted", "SCHEDULED": "running"}


def runs(study: str, tracking_uri: str | None = None) -> pandas.DataFrame:
    """One row a recorded trial: status, trial_id, cell, seed, a column an axis, the last value of each metric, and its tags."""
    where = store(tracking_uri)
    rows = [_row(run) for run in _search(where, study, TRIALS)]
    return pandas.DataFrame(rows) if rows else pandas.DataFrame(columns=COLUMNS)


def planned(study: str, tracking_uri: str | None = None) -> pandas.DataFrame:
    """One row a trial of the study's latest launch; `status` is «missing» where nothing is recorded of it."""
    trials = pandas.DataFrame([_identity(trial) for trial in latest_plan(study, tracking_uri)])
    recorded = runs(study, tracking_uri)
    if trials.empty:
        return trials
    found = recorded[["trial_id", *(column for column in recorded if column not in trials)]]
    joined = trials.merge(found, on="trial_id", how="left")
    joined["status"] = joined["status"].astype(object).where(joined["status"].notna(), "missing")
    return joined


def latest_plan(study: str, tracking_uri: str | None = None) -> list[Trial]:
    """What the latest launch set out to run, as it recorded it."""
    where = store(tracking_uri)
    for launch in _launches(where, study):
        with suppress(LookupError):  # it was killed before it could say
            return [Trial.from_config(config) for config in _artifact(where, launch.info.run_id, "plan.json")]
    return []


def latest_launch_tags(study: str, tracking_uri: str | None = None) -> dict[str, str]:
    launches = _launches(store(tracking_uri), study)
    return dict(launches[0].data.tags) if launches else {}


def _launches(where: Store, study: str) -> list[Any]:
    """Latest first."""
    return sorted(_search(where, study, LAUNCHES), key=lambda run: run.info.start_time, reverse=True)


def histories(frame: pandas.DataFrame, metrics: Iterable[str], tracking_uri: str | None = None) -> pandas.DataFrame:
    """The metrics by epoch, long: run_id, metric, epoch, value."""
    client = _client(store(tracking_uri))
    metrics = list(metrics)
    rows = [
        (run_id, metric, point.step, point.value)
        for run_id in frame["run_id"].dropna()
        for metric in metrics
        for point in client.get_metric_history(run_id, metric)
    ]
    return pandas.DataFrame(rows, columns=["run_id", "metric", "epoch", "value"])


def initial_margins(run_id: str, tracking_uri: str | None = None) -> dict[str, Any]:
    """The histogram of soft margins before the first step: `edges` and `counts`."""
    return _artifact(store(tracking_uri), run_id, "initial_margins.json")


def studies(tracking_uri: str | None = None) -> dict[str, str]:
    """The names of all studies in the store, with the numbers of their MLflow experiments."""
    where = store(tracking_uri)
    if not where.exists:
        return {}
    with _readable():
        found = {experiment.name: experiment.experiment_id for experiment in _client(where).search_experiments()}
    return {name: found[name] for name in sorted(found) if name != "Default"}


@dataclass(frozen=True)
class Recorded:
    """What of a half-done run is in the store. An epoch is written in one transaction, so one metric stands for all of it."""

    epochs: set[int] = field(default_factory=set)
    summaries: set[str] = field(default_factory=set)


def recorded(run_id: str, tracking_uri: str | None = None) -> Recorded:
    client = _client(store(tracking_uri))
    epochs = {point.step for point in client.get_metric_history(run_id, "learning_rate")}
    return Recorded(epochs, set(client.get_run(run_id).data.metrics) & SUMMARIES)


def _search(where: Store, study: str, wanted: str) -> Iterator[Any]:
    if not where.exists:
        return
    with _readable():
        client = _client(where)
        experiment = client.get_experiment_by_name(study)
    token: str | None = ""
    while experiment and token is not None:
        with _readable():
            page = client.search_runs([experiment.experiment_id], wanted, max_results=5000, page_token=token or None)
        yield from page
        token = page.token or None


def _row(run: Any) -> dict[str, Any]:
    tags = run.data.tags
    seconds = (run.info.end_time - run.info.start_time) / 1000 if run.info.end_time else None
    return {
        "run_id": run.info.run_id,
        "status": STATUS[run.info.status],
        **_identity(Trial.from_config(json.loads(tags["config"]))),
        "seconds": seconds,
        "failure": tags.get("failure"),
        "git_commit": tags.get("git_commit"),
        **run.data.metrics,
    }


def _identity(trial: Trial) -> dict[str, Any]:
    """A column an axis, by label, so that a person can group and read them."""
    axes = {axis: (getattr(trial, axis).label if axis in MENUS else value) for axis, value in trial.config.items()}
    return {"trial_id": trial.id, "cell": trial.cell, **axes}


def _artifact(where: Store, run_id: str, path: str) -> Any:
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory() as folder:
        try:
            local = download_artifacts(run_id=run_id, artifact_path=path, dst_path=folder, tracking_uri=where.uri)
        except (MlflowException, OSError) as error:
            raise LookupError(f"run {run_id} has no artifact {path}: {error}") from error
        return json.loads(Path(local).read_text())


@contextmanager
def _readable() -> Iterator[None]:
    """One sentence for a person whose store is away or damaged."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError) as error:
        raise StoreFailed(f"the MLflow store cannot be read: {str(error).splitlines()[0]}") from error


def _client(where: Store) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=where.uri)
