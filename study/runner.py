"""`run`: what is missing of a study is trained and recorded; what is there stays as it is."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas

from analysis.home import home, store
from analysis.records import latest_plan, planned, runs
from study.definition import Study, load
from study.display import Display
from study.launch import Listener, Resources, Stop, launch
from study.planning import Progress, plan, progress
from study.provenance import provenance
from study.record import Journal
from trainables import checkpoints
from trainables.trial import Trial

CHECKPOINT_SECONDS = 5.0
Watch = Callable[[Progress], Display]


@dataclass
class Outcome:
    """What a launch did. `reason` says why it ended early, if it did."""

    study: str
    before: Progress
    finished: list[Trial] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)  # trial id -> cause
    reason: str | None = None

    @property
    def failures_by_cause(self) -> Counter[str]:
        return Counter(self.failures.values())


@dataclass(frozen=True)
class Options:
    """How to launch; nothing in here changes a result."""

    tracking_uri: str | None = None
    address: str | None = None
    cpus: float | None = None
    gpus: float | None = None
    retry_failed: bool = False
    fail_fast: bool = False
    checkpoint_seconds: float = CHECKPOINT_SECONDS


def run(study: Study | str | Path, **options: Any) -> pandas.DataFrame:
    """Run a study and return the frame of its runs, one row a planned trial. Options are those of `Options`."""
    study = study if isinstance(study, Study) else load(study)
    chosen = Options(**options)
    carry_out(study, chosen)
    return planned(study.name, chosen.tracking_uri)


def carry_out(study: Study, options: Options, watch: Watch | None = None) -> Outcome:
    """Run what is missing. `watch` makes a display of the trials before the first one starts."""
    trials = plan(study)
    recorded = runs(study.name, options.tracking_uri)
    before = progress(trials, recorded, options.retry_failed)
    outcome = Outcome(study.name, before)
    if not before.to_run and _same(trials, latest_plan(study.name, options.tracking_uri)):
        return outcome
    journal = _journal(study, recorded, before, options)
    journal.open(trials, study.about)
    keeper = _Keeper(outcome, Stop(), options.fail_fast)
    display = watch(before) if watch else None
    listeners: list[Listener] = [journal, keeper, *([display] if display else [])]
    try:
        if before.to_run:
            with display.live() if display else nullcontext():
                launch(
                    before.to_run,
                    listeners,
                    keeper.stop,
                    resources=Resources(options.cpus or study.cpus, options.gpus if options.gpus is not None else study.gpus),
                    checkpoint_folder=checkpoint_folder(),
                    checkpoint_seconds=options.checkpoint_seconds,
                    address=options.address,
                )
    except KeyboardInterrupt:
        keeper.stop.reason = "interrupted"
    except Exception:
        keeper.stop.reason = "broken off"
        raise
    finally:
        for trial in keeper.running.values():
            journal.interrupt(trial)
        outcome.reason = keeper.stop.reason
        journal.close("KILLED" if outcome.reason else "FAILED" if outcome.failures else "FINISHED")
    return outcome


def checkpoint_folder() -> Path:
    return home() / "checkpoints"


def _same(trials: Sequence[Trial], others: Sequence[Trial]) -> bool:
    return {trial.id for trial in trials} == {trial.id for trial in others}


def _journal(study: Study, recorded: pandas.DataFrame, before: Progress, options: Options) -> Journal:
    wanted = recorded[recorded["trial_id"].isin([trial.id for trial in before.to_run])]
    failed = wanted["status"] == "failed"
    resumable, replaceable = (
        dict(zip(part["trial_id"], part["run_id"], strict=True)) for part in (wanted[~failed], wanted[failed])
    )
    journal = Journal(store(options.tracking_uri), study.name, provenance(), resumable, replaceable, _delete_checkpoint)
    for trial in before.done:  # a launch that was killed may have left some
        _delete_checkpoint(trial)
    return journal


def _delete_checkpoint(trial: Trial) -> None:
    checkpoints.delete(str(checkpoint_folder()), trial.id)


@dataclass
class _Keeper:
    """Keeps the outcome of the launch, and ends it at the first failure if asked to."""

    outcome: Outcome
    stop: Stop
    fail_fast: bool
    running: dict[str, Trial] = field(default_factory=dict)

    def begin(self, trial: Trial) -> None:
        self.running[trial.id] = trial

    def facts(self, trial: Trial, facts: dict[str, Any]) -> None: ...

    def epochs(self, trial: Trial, rows: list[dict[str, float]]) -> None: ...

    def finish(self, trial: Trial, summary: dict[str, float]) -> None:
        self.running.pop(trial.id, None)
        self.outcome.finished.append(trial)

    def fail(self, trial: Trial, cause: str, traceback: str) -> None:
        self.running.pop(trial.id, None)
        self.outcome.failures[trial.id] = cause
        if self.fail_fast:
            self.stop.reason = f"stopped at the first failure: {cause}"
