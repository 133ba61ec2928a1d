"""Trials through Ray Tune, on this machine or on a running cluster."""

import logging
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

# Before ray is imported, and so before its workers inherit the environment.
os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")  # a CSV, a JSON and a TensorBoard file a trial
os.environ.setdefault("RAY_CHDIR_TO_TRIAL_DIR", "0")
os.environ.setdefault("TUNE_DISABLE_SIGINT_HANDLER", "1")  # ours says how to go on
os.environ.setdefault("TUNE_PRINT_ALL_TRIAL_ERRORS", "0")
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S", "0")

import ray
from ray import tune

from trainables.datasets import load_dataset
from trainables.ray_adapter import Surroundings, TrialTrainable
from trainables.trial import Trial

LOST_WORKER_RETRIES = 3
SESSIONS = Path("/tmp") / f"tautune-ray-{os.getuid()}"  # short: a socket's path has at most 107 bytes


class Listener(Protocol):
    """Whoever wants to know what happens to the trials: the journal, the display."""

    def begin(self, trial: Trial) -> None: ...
    def facts(self, trial: Trial, facts: dict[str, Any]) -> None: ...
    def epochs(self, trial: Trial, rows: list[dict[str, float]]) -> None: ...
    def finish(self, trial: Trial, summary: dict[str, float]) -> None: ...
    def fail(self, trial: Trial, cause: str, traceback: str) -> None: ...


@dataclass(frozen=True)
class Resources:
    """What a trial occupies; `gpus` None means one where the cluster has any."""

    cpus: float = 1.0
    gpus: float | None = None


@dataclass
class Stop:
    """Set a reason, and the launch ends as soon as Tune looks."""

    reason: str | None = None


def launch(
    trials: Sequence[Trial],
    listeners: Sequence[Listener],
    stop: Stop,
    *,
    resources: Resources,
    checkpoint_folder: Path,
    checkpoint_seconds: float,
    address: str | None = None,
) -> None:
    """Run the trials; what became of them, the listeners know. Returns early, without error, when `stop` has a reason."""
    with _ray(address), _interrupts(stop):
        gpus = resources.gpus
        if gpus is None:
            gpus = 1.0 if ray.cluster_resources().get("GPU", 0) else 0.0
        surroundings = Surroundings(_shared_datasets(trials), str(checkpoint_folder), checkpoint_seconds, resources.cpus, gpus)
        trainable = tune.with_parameters(TrialTrainable, surroundings=surroundings)
        tuner = tune.Tuner(
            tune.with_resources(trainable, {"cpu": resources.cpus, "gpu": gpus}),
            param_space=tune.grid_search([{"id": trial.id, "trial": trial.config} for trial in trials]),
            tune_config=tune.TuneConfig(reuse_actors=True, trial_dirname_creator=lambda trial: trial.trial_id),
            run_config=tune.RunConfig(
                name="launch",
                storage_path=str(SESSIONS / f"session_tune_{os.getpid()}"),
                callbacks=[_Reporter(listeners, trials)],
                stop=_Stopper(stop),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),  # a trial keeps its own
                failure_config=tune.FailureConfig(max_failures=LOST_WORKER_RETRIES),
                verbose=0,
            ),
        )
        tuner.fit()


def _shared_datasets(trials: Sequence[Trial]) -> dict[str, Any]:
    choices = {trial.dataset.canonical: trial.dataset for trial in trials}
    return {key: ray.put(load_dataset(choice)) for key, choice in choices.items()}


class _Reporter(tune.Callback):  # type: ignore[misc]  # ray is untyped
    def __init__(self, listeners: Sequence[Listener], trials: Sequence[Trial]):
        self.listeners = listeners
        self.trials = {trial.id: trial for trial in trials}

    def __getstate__(self) -> dict[str, Any]:
        return {"listeners": (), "trials": {}}  # Tune pickles its callbacks to restore a launch, which we never do

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._tell(lambda listener, ours: listener.begin(ours), trial)

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any) -> None:
        if "facts" in result:
            self._tell(lambda listener, ours: listener.facts(ours, result["facts"]), trial)
        self._tell(lambda listener, ours: listener.epochs(ours, result["epochs"]), trial)
        if "failure" in result:
            self._tell(lambda listener, ours: listener.fail(ours, result["failure"], result["traceback"]), trial)
        elif result["done"]:
            self._tell(lambda listener, ours: listener.finish(ours, result["summary"]), trial)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """The worker or its node was lost once too often."""
        text = str(trial.get_error() or "the worker died")
        self._tell(lambda listener, ours: listener.fail(ours, f"worker lost: {text.splitlines()[0]}", text), trial)

    def _tell(self, what: Callable[[Listener, Trial], None], ray_trial: Any) -> None:
        trial = self.trials[ray_trial.config["id"]]
        for listener in self.listeners:
            what(listener, trial)


class _Stopper(tune.Stopper):  # type: ignore[misc]  # ray is untyped
    def __init__(self, stop: Stop):
        self.stop = stop  # shared with the driver; a pickled copy would not be

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return self.stop.reason is not None


@contextmanager
def _ray(address: str | None) -> Iterator[None]:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        _sweep_sessions()
        options |= {"address": "local", "include_dashboard": False, "_temp_dir": str(SESSIONS)}
    else:
        options |= {"address": address}
        _check_reachable(address)
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError) as error:
        raise ConnectionError(f"Ray cannot be reached at {options['address']}: {str(error).splitlines()[0]}") from error
    try:
        yield
    finally:
        ray.shutdown()
        _sweep_sessions()


def _check_reachable(address: str) -> None:
    """Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ConnectionError(f"no Ray cluster answers at {address}: {error.strerror or error}") from error


def _sweep_sessions() -> None:
    """Remove what local sessions have left behind, unless their driver, whose number ends their name, is still there."""
    for session in SESSIONS.glob("session_*_*"):
        driver = int(session.name.rpartition("_")[2])
        if driver == os.getpid() or not _is_alive(driver):
            shutil.rmtree(session, ignore_errors=True)
    if not any(SESSIONS.glob("session_*_*")):
        shutil.rmtree(SESSIONS, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def _interrupts(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) asks the launch to end; the second ends it on the spot."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: Any) -> None:
        if stop.reason == "interrupted":
            raise KeyboardInterrupt
        stop.reason = "interrupted"

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
