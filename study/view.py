"""Tables and sentences that the command line prints."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pandas
from pydantic.fields import FieldInfo
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.records import planned
from search_spaces import SPACES
from study.display import Display
from study.planning import Progress
from study.runner import Outcome
from trainables.choices import Menu, field_rule
from trainables.trial import MENUS, Trial

MOST_CELLS = 200


def cells_table(trials: Sequence[Trial], recorded: pandas.DataFrame) -> RenderableType:
    """A line a cell: its axes as far as they vary, and how many of its seeds are in which state."""
    status = dict(zip(recorded["trial_id"], recorded["status"], strict=True))
    cells: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        cells[trial.cell].append(trial)
    axes = _varying(trials)
    table = Table(*axes, "seeds", "state", box=None, pad_edge=False)
    for cell in list(cells.values())[:MOST_CELLS]:
        states = Counter(status.get(trial.id, "to run") for trial in cell)
        state = ", ".join(f"{count} {name}" for name, count in states.items())
        table.add_row(*_row(*(getattr(cell[0], axis) for axis in axes), len(cell), state))
    more = len(cells) - MOST_CELLS
    return Group(table, Text(f"... and {more:,} more cells")) if more > 0 else table


def _varying(trials: Sequence[Trial]) -> list[str]:
    always = ["dataset", "noise", "loss"]
    others = [axis for axis in trials[0].config if axis not in (*always, "seed")] if trials else []
    return [*always, *(axis for axis in others if len({_text(getattr(trial, axis)) for trial in trials}) > 1)]


def _text(value: Any) -> str:
    return getattr(value, "label", None) or str(value)


def _row(*cells: Any) -> list[Text]:
    """Plain: a label in [brackets] is no markup."""
    return [Text(_text(cell)) for cell in cells]


def run_summary(outcome: Outcome, reference: str) -> RenderableType:
    before = outcome.before
    if not before.to_run:
        rest = f"; {len(before.failed)} failed earlier: tautune run {reference} --retry-failed" if before.failed else ""
        return Text(f"{outcome.study}: nothing to do, {len(before.done)} of {before.total} trials are finished{rest}")
    finished = len(before.done) + len(outcome.finished)
    lines = [
        f"{outcome.study}: {finished} of {before.total} trials finished, {len(outcome.failures) + len(before.failed)} failed"
    ]
    lines += [f"  {count} x {cause}" for cause, count in outcome.failures_by_cause.most_common()]
    if outcome.reason:
        lines.append(f"{outcome.reason}; go on with: tautune run {reference}")
    if outcome.failures:
        lines.append(f"after mending the cause: tautune run {reference} --retry-failed")
    if not outcome.reason:
        lines.append(f"read it: tautune report {reference}    browse it: tautune ui")
    return Text("\n".join(lines))


def status_view(name: str, tracking_uri: str | None) -> RenderableType:
    frame = planned(name, tracking_uri)
    counts = Counter(frame["status"])
    head = f"{name}: {len(frame)} trials: " + ", ".join(f"{count} {state}" for state, count in counts.items())
    table = Table("dataset", "noise", "loss", "seeds", "state", "test accuracy", box=None, pad_edge=False)
    for (dataset, noise, loss, _), cell in frame.groupby(["dataset", "noise", "loss", "cell"], sort=False):
        states = ", ".join(f"{count} {state}" for state, count in Counter(cell["status"]).items())
        accuracy = cell.get("test_accuracy_final", pandas.Series(dtype=float)).mean()
        shown = "" if pandas.isna(accuracy) else f"{accuracy:.2f} %"
        table.add_row(*_row(dataset, noise, loss, len(cell), states, shown))
    causes = Counter(frame.loc[frame["status"] == "failed", "failure"])
    failures = [Text(f"{count} x {cause}") for cause, count in causes.most_common()]
    return Group(table, *failures, Text(head))


def watch(console: Console) -> Callable[[Progress], Display]:
    return lambda before: Display(console, before.to_run, len(before.done) + len(before.failed))


def menu_table(menu: Menu) -> RenderableType:
    table = Table(menu.kind, "parameters", "what it is", box=None, pad_edge=False)
    for name, entry in menu.entries.items():
        fields = menu.parameters(name).model_fields
        own = [_parameter(key, info) for key, info in fields.items() if key not in menu.extras]
        table.add_row(Text(name), Text("\n".join(own)), Text(" ".join((entry.__doc__ or "").split("\n\n")[0].split())))
    if not menu.extras:
        return table
    model = menu.parameters(next(iter(menu.entries))).model_fields
    extras = [f"  {_parameter(key, model[key])}" for key in menu.extras]
    return Group(table, Text("\n".join([f"every {menu.kind} also takes", *extras])))


def _parameter(key: str, info: FieldInfo) -> str:
    default = "" if info.is_required() or info.default is None else f" (default {info.default})"
    return f"{key} {field_rule(info)}{default}"


def spaces_table() -> Table:
    table = Table("parameter", "from", "to", "scale", "source", box=None, pad_edge=False)
    for name, space in SPACES.items():
        table.add_row(name, f"{space.low:g}", f"{space.high:g}", "log" if space.log else "linear", space.source)
    return table


_PLURALS = {"loss": "losses"}
LISTINGS: dict[str, Callable[[], RenderableType]] = {
    **{_PLURALS.get(kind, f"{kind}s"): (lambda menu=menu: menu_table(menu)) for kind, menu in MENUS.items()},  # type: ignore[misc]
    "spaces": spaces_table,
}
