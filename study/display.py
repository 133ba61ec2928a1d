"""What a person sees of a launch: a live picture on a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trainables.trial import Trial


@dataclass
class _Running:
    trial: Trial
    epoch: int = 0
    test_accuracy: float | None = None
    since: float = field(default_factory=time.monotonic)

    @property
    def accuracy(self) -> str:
        return "" if self.test_accuracy is None else f"test {self.test_accuracy:.2f} %"


class Display:
    """Told by the launch what happens; shows it. Use as `with display.live():` around the launch."""

    def __init__(self, console: Console, trials: Sequence[Trial], done_before: int):
        self.console = console
        self.total = len(trials) + done_before
        self.ended = done_before
        self.failed = 0
        self.epochs_left = sum(trial.epochs for trial in trials)
        self.epochs_done = 0
        self.started: float | None = None  # when the first trial began: Ray's own start is no measure of a trial
        self.running: dict[str, _Running] = {}

    def live(self) -> AbstractContextManager[Any]:
        if not self.console.is_terminal:
            return nullcontext()
        return Live(get_renderable=self._picture, console=self.console, refresh_per_second=4, transient=True)

    def begin(self, trial: Trial) -> None:
        self.started = self.started or time.monotonic()
        self.running[trial.id] = _Running(trial)

    def facts(self, trial: Trial, facts: dict[str, Any]) -> None: ...

    def epochs(self, trial: Trial, rows: list[dict[str, float]]) -> None:
        line = self.running[trial.id]
        for row in rows:
            self.epochs_done += int(row["epoch"]) - line.epoch
            line.epoch = int(row["epoch"])
            line.test_accuracy = row.get("test_accuracy", line.test_accuracy)

    def finish(self, trial: Trial, summary: dict[str, float]) -> None:
        line = self.running.pop(trial.id)
        self.ended += 1
        self._say(f"{trial.label}: {line.accuracy or 'done'} in {duration(time.monotonic() - line.since)}")

    def fail(self, trial: Trial, cause: str, traceback: str) -> None:
        line = self.running.pop(trial.id, _Running(trial))
        self.epochs_done += trial.epochs - line.epoch
        self.ended += 1
        self.failed += 1
        self._say(f"{trial.label}: failed: {cause}")

    def _say(self, text: str) -> None:
        if not self.console.is_terminal:
            self.console.print(f"[{self.ended}/{self.total}] {text}; {self._eta()}", markup=False, highlight=False)

    def _eta(self) -> str:
        if not self.epochs_done or self.started is None:
            return "starting"
        left = (time.monotonic() - self.started) / self.epochs_done * (self.epochs_left - self.epochs_done)
        return f"about {duration(left)} left"

    def _picture(self) -> RenderableType:
        head = Table.grid(padding=(0, 2))
        failed = Text(f"{self.failed} failed", style="red") if self.failed else Text("")
        bar = ProgressBar(total=max(1, self.epochs_left), completed=self.epochs_done, width=40)
        head.add_row(Text(f"{self.ended}/{self.total} trials"), bar, Text(self._eta()), failed)
        lines = Table.grid(padding=(0, 2))
        for line in list(self.running.values()):
            lines.add_row(Text(f"  {line.trial.label}"), Text(f"epoch {line.epoch}/{line.trial.epochs}"), Text(line.accuracy))
        return Group(head, lines)


def duration(seconds: float) -> str:
    """«0.4 s», «12 s», «3 min 20 s», «2 h 5 min», «3 d 4 h»"""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"
