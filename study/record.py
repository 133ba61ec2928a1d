"""The only writer of runs: one MLflow run a launch, one nested run a trial, written by a thread of the driver's own.

Events of a trial are gathered and written together, an epoch always whole in one transaction. So whatever is killed whenever, a
later launch finds each epoch's metrics either there or not, and goes on in the same run: a trial is recorded exactly once.
"""

import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from analysis.home import Store, StoreFailed
from analysis.records import LAUNCHES, Recorded, recorded
from trainables.trial import Trial

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
logging.getLogger("mlflow").setLevel(logging.WARNING)
GATHER_SECONDS = 0.25
BATCH_LIMIT = 900  # MLflow takes 1,000 entries a request


@dataclass
class _Entry:
    """What is known, and not yet written, of one trial."""

    trial: Trial
    run_id: str | None = None
    recorded: Recorded = field(default_factory=Recorded)
    began: float | None = None  # seconds since 1970, until it is written
    epochs: list[Mapping[str, float]] = field(default_factory=list)
    summary: dict[str, float] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, Any] = field(default_factory=dict)
    status: str | None = None
    ended: float = 0.0


class Journal:
    """Call `begin`, `epochs`, `finish`, `fail`, `interrupt` from the driver as things happen; `close` waits for the last write.

    `resumable` maps the ids of trials that were begun in an earlier launch to their runs; `replaceable` the ids of trials that
    failed and are to begin anew, when their old runs go to MLflow's bin. `once_finished` is called with a trial when all about
    it is in the store.
    """

    def __init__(
        self,
        where: Store,
        study: str,
        tags: Mapping[str, str],
        resumable: Mapping[str, str],
        replaceable: Mapping[str, str],
        once_finished: Callable[[Trial], None],
    ):
        self.where = where
        self.once_finished = once_finished
        _create_database(where)
        self.client = MlflowClient(tracking_uri=where.uri)
        self.study = study
        self.tags = dict(tags)
        self.experiment_id = _experiment(self.client, where, study)
        self.entries: dict[str, _Entry] = {}
        self.resumable = dict(resumable)
        self.replaceable = dict(replaceable)
        self.events: queue.SimpleQueue[tuple[str, Any] | None] = queue.SimpleQueue()
        self.error: Exception | None = None
        self.launch_id = ""
        self.thread = threading.Thread(target=self._write_all, name="mlflow-writer", daemon=True)

    def open(self, plan: Sequence[Trial], about: str) -> None:
        """Start the launch's own run, with what it sets out to do."""
        self._end_stale_launches()
        tags = {**self.tags, "kind": "launch", "study": self.study, "about": about, "mlflow.note.content": about}
        run = self.client.create_run(self.experiment_id, tags=tags, run_name=f"launch of {len(plan)} trials")
        self.launch_id = run.info.run_id
        self.client.log_dict(self.launch_id, [trial.config for trial in plan], "plan.json")
        self.thread.start()

    def begin(self, trial: Trial) -> None:
        self._put(trial, began=time.time())

    def epochs(self, trial: Trial, rows: Iterable[Mapping[str, float]]) -> None:
        self._put(trial, epochs=list(rows))

    def facts(self, trial: Trial, facts: Mapping[str, Any]) -> None:
        tags = {key: facts[key] for key in ("observed_labels_sha256", "hardware")}
        if facts["resumed_from_epoch"]:
            tags["resumed_from_epoch"] = str(facts["resumed_from_epoch"])
        artifacts = {"initial_margins.json": facts["initial_margins"]}
        self._put(trial, tags=tags, artifacts=artifacts, summary={"realised_noise_rate": facts["realised_noise_rate"]})

    def finish(self, trial: Trial, summary: Mapping[str, float]) -> None:
        self._put(trial, summary=dict(summary), status="FINISHED", ended=time.time())

    def fail(self, trial: Trial, cause: str, traceback: str) -> None:
        news: dict[str, Any] = {"tags": {"failure": cause}, "artifacts": {"traceback.txt": traceback}}
        self._put(trial, **news, status="FAILED", ended=time.time())

    def interrupt(self, trial: Trial) -> None:
        self._put(trial, status="KILLED", ended=time.time())

    def close(self, status: str) -> None:
        self.events.put(None)
        self.thread.join()
        self._raise_error()
        self.client.set_terminated(self.launch_id, status)

    def _put(self, trial: Trial, **news: Any) -> None:
        self._raise_error()
        self.events.put((trial.id, (trial, news)))

    def _raise_error(self) -> None:
        if self.error is not None:
            raise StoreFailed(f"the MLflow store cannot be written: {str(self.error).splitlines()[0]}") from self.error

    def _write_all(self) -> None:
        open_for_more = True
        try:
            while open_for_more:
                changed, open_for_more = self._gather()
                for trial_id in changed:
                    self._write(self.entries[trial_id])
        except Exception as error:  # handed to the driver, which ends the launch with it
            self.error = error

    def _gather(self) -> tuple[list[str], bool]:
        """Wait for an event, then a moment longer: a trial of milliseconds costs one write instead of five."""
        changed: dict[str, None] = {}
        event = self.events.get()
        deadline = time.monotonic() + GATHER_SECONDS
        while event is not None:
            trial_id, (trial, news) = event
            self._merge(trial_id, trial, news)
            changed[trial_id] = None
            left = deadline - time.monotonic()
            if left <= 0:  # however much more there is: what is gathered is written while the trials go on
                return list(changed), True
            try:
                event = self.events.get(timeout=left)
            except queue.Empty:
                return list(changed), True
        return list(changed), False

    def _merge(self, trial_id: str, trial: Trial, news: Mapping[str, Any]) -> None:
        if trial_id not in self.entries:
            run_id = self.resumable.get(trial_id)
            self.entries[trial_id] = _Entry(trial, run_id, recorded(run_id, self.where.uri) if run_id else Recorded())
        entry = self.entries[trial_id]
        for key, value in news.items():
            if key == "epochs":
                entry.epochs += value
            elif isinstance(value, dict):
                getattr(entry, key).update(value)
            else:
                setattr(entry, key, value)

    def _write(self, entry: _Entry) -> None:
        if entry.run_id is None and entry.began is None:
            entry.began = entry.ended  # its worker died before it could begin
        params = self._begin_run(entry, entry.began) if entry.began is not None else []
        assert entry.run_id is not None
        metrics = _metrics(entry)
        tags = [RunTag(key, value) for key, value in entry.tags.items()]
        for batch in _batches(metrics) or ([[]] if params or tags else []):
            self.client.log_batch(entry.run_id, metrics=batch, params=params, tags=tags)
            params, tags = [], []
        for path, content in entry.artifacts.items():
            write = self.client.log_text if isinstance(content, str) else self.client.log_dict
            write(entry.run_id, content, path)
        entry.recorded.epochs.update(int(row["epoch"]) for row in entry.epochs)
        entry.recorded.summaries.update(entry.summary)
        entry.epochs, entry.summary, entry.tags, entry.artifacts, entry.began = [], {}, {}, {}, None
        if entry.status is not None:
            self.client.set_terminated(entry.run_id, entry.status, end_time=_milliseconds(entry.ended))
            if entry.status == "FINISHED":
                self.once_finished(entry.trial)
            entry.status = None

    def _begin_run(self, entry: _Entry, began: float) -> list[Param]:
        trial = entry.trial
        parent = {"mlflow.parentRunId": self.launch_id}
        if trial.id in self.replaceable:
            self.client.delete_run(self.replaceable.pop(trial.id))
        if entry.run_id is None:
            identity = {"trial_id": trial.id, "cell": trial.cell, "seed": str(trial.seed), "config": trial.canonical()}
            tags = {**self.tags, "kind": "trial", "study": self.study, **identity, **parent, **entry.tags}
            entry.tags = {}
            run = self.client.create_run(self.experiment_id, _milliseconds(began), tags, run_name=trial.label)
            entry.run_id = run.info.run_id
        else:
            self.client.update_run(entry.run_id, status="RUNNING")
            entry.tags |= parent
        return [Param(key, str(value)) for key, value in flattened(trial.config).items()]

    def _end_stale_launches(self) -> None:
        """A launch that was killed could not say so."""
        for run in self.client.search_runs([self.experiment_id], f"attributes.status = 'RUNNING' and {LAUNCHES}"):
            self.client.set_terminated(run.info.run_id, "KILLED")


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"loss": {"name": "gce"}} -> {"loss.name": "gce"}"""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        flat |= flattened(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def _metrics(entry: _Entry) -> list[list[Metric]]:
    """A list an epoch, so that none is torn apart; summaries last."""
    fresh = [row for row in entry.epochs if int(row["epoch"]) not in entry.recorded.epochs]
    groups = [
        [
            Metric(name, value, _milliseconds(row["timestamp"]), int(row["epoch"]))
            for name, value in row.items()
            if name not in ("epoch", "timestamp")
        ]
        for row in fresh
    ]
    now = _milliseconds(time.time())
    groups.append(
        [Metric(name, value, now, 0) for name, value in entry.summary.items() if name not in entry.recorded.summaries]
    )
    return [group for group in groups if group]


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)


def _batches(groups: Iterable[list[Metric]]) -> list[list[Metric]]:
    batches: list[list[Metric]] = []
    for group in groups:
        if not batches or len(batches[-1]) + len(group) > BATCH_LIMIT:
            batches.append([])
        batches[-1] += group
    return batches


def _create_database(where: Store) -> None:
    """Make the embedded store aside and put it in place whole: whoever opens a store in the making fails in its migration."""
    if where.exists or where.database is None:
        return
    where.database.parent.mkdir(parents=True, exist_ok=True)
    draft = where.database.with_name(f"{where.database.name}.{os.getpid()}.draft")
    MlflowClient(tracking_uri=f"sqlite:///{draft}").search_experiments()
    with contextlib.suppress(FileExistsError):  # another launch was first
        os.link(draft, where.database)
    draft.unlink()


def _experiment(client: MlflowClient, where: Store, study: str) -> str:
    if where.artifacts is not None:
        where.artifacts.mkdir(parents=True, exist_ok=True)
    found = client.get_experiment_by_name(study)
    if found is not None:
        return found.experiment_id
    location = (where.artifacts / study).as_uri() if where.artifacts is not None else None
    return client.create_experiment(study, artifact_location=location)
