"""From planned trials to cells, and from cells to tables in which nothing planned is dropped: what is not there is seen."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas

from trainables.trial import AXES


@dataclass(frozen=True)
class Metric:
    """A reported number in percent; `better` picks the best mean of a column."""

    title: str
    better: Callable[[Iterable[float]], float]


STATUSES = ("finished", "failed", "running", "interrupted", "missing")
SETTING = ("dataset", "noise")
NOT_PLANNED = "–"


def row_axes(cells: pandas.DataFrame) -> list[str]:
    """What tells the rows of a table apart: the loss, then any other axis that varies."""
    return list(cells.columns[cells.columns.get_loc("loss") : cells.columns.get_loc("seeds")])


def row_label(cells: pandas.DataFrame) -> "pandas.Series[str]":
    """The row axes in one text, for figures and sentences: «mae scale 1.5 · epochs 30»."""
    loss, *others = row_axes(cells)
    label = cells[loss].astype(str)
    for axis in others:
        label = label + f" · {axis} " + cells[axis].astype(str)
    return label


def cells(frame: pandas.DataFrame) -> pandas.DataFrame:
    """One row a cell: its axes, its seeds and how far they are, and for each metric every seed's value, their mean and std.

    Only finished runs have values: the last metric of a run that failed or still runs is not comparable.
    """
    frame = _one_row_a_trial(frame)
    frame = frame.assign(id=frame["cell"].astype(str).str[:8])
    axes = ["cell", *SETTING, "loss", *_varying(frame)]
    rows = [_cell(group.sort_values("seed"), axes) for _, group in frame.groupby("cell", sort=False)]
    return pandas.DataFrame(rows, columns=[*axes, "seeds", "planned", *STATUSES, *_metric_columns()])


def _one_row_a_trial(frame: pandas.DataFrame) -> pandas.DataFrame:
    """A trial that failed and was run again is recorded twice; it is planned once, and its best run counts."""
    order = frame["status"].map(STATUSES.index).sort_values(kind="stable").index
    return frame.loc[order].drop_duplicates("trial_id").sort_index()


def _varying(frame: pandas.DataFrame) -> list[str]:
    others = [axis for axis in AXES if axis not in {*SETTING, "loss", "seed"} and axis in frame]
    varying = [axis for axis in others if frame[axis].nunique(dropna=False) > 1]
    shown = frame[["cell", *SETTING, "loss", *varying]].drop_duplicates()
    # Labels round numbers to six digits: where that hides a difference, the start of the cell's id tells the rows apart.
    return [*varying, "id"] if shown.drop(columns="cell").duplicated().any() else varying


def _cell(trials: pandas.DataFrame, axes: list[str]) -> dict[str, Any]:
    finished = trials["status"] == "finished"
    row: dict[str, Any] = {axis: trials[axis].iloc[0] for axis in axes}
    row |= {"seeds": tuple(trials["seed"]), "planned": len(trials)}
    row |= {status: int((trials["status"] == status).sum()) for status in STATUSES}
    for metric in METRICS:
        values = trials[metric].where(finished).astype(float) if metric in trials else pandas.Series(math.nan, trials.index)
        row |= {f"{metric}_values": tuple(values), f"{metric}_mean": values.mean(), f"{metric}_std": values.std(ddof=1)}
    return row


def _metric_columns() -> list[str]:
    return [f"{metric}_{part}" for metric in METRICS for part in ("values", "mean", "std")]


def table(cells: pandas.DataFrame, metric: str) -> pandas.DataFrame:
    """For people: a row a loss, a column a data set and noise, entries like «95.75 ± 1.20 (2 of 3)»; a dash was not planned."""
    entries = [entry(cell, metric) for _, cell in cells.iterrows()]
    return _wide(cells, pandas.Series(entries, index=cells.index, dtype=object), NOT_PLANNED)


def best(cells: pandas.DataFrame, metric: str) -> pandas.DataFrame:
    """True where `table` shows the best mean of its column, to the digits that are shown; a column of one value has no best."""
    means = _wide(cells, cells[f"{metric}_mean"].round(2), math.nan).astype(float)
    chosen = [METRICS[metric].better(column.dropna()) if column.count() > 1 else math.nan for _, column in means.items()]
    return means.eq(chosen, axis="columns")


def entry(cell: "pandas.Series[Any]", metric: str) -> str:
    """One cell in words: its mean and std if any seed has the metric, else what became of its seeds."""
    values = [value for value in cell[f"{metric}_values"] if not math.isnan(value)]
    if not values:
        return "n/a" if cell["finished"] else _outcome(cell)
    spread = "" if len(values) == 1 else f" ± {cell[f'{metric}_std']:.2f}"
    mark = "" if len(values) == cell["planned"] else f" ({len(values)} of {cell['planned']})"
    return f"{cell[f'{metric}_mean']:.2f}{spread}{mark}"


def _outcome(cell: "pandas.Series[Any]") -> str:
    """«failed» when all its seeds did, «1 failed, 2 missing» when they differ."""
    counts = {status: cell[status] for status in STATUSES if cell[status]}
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{count} {status}" for status, count in counts.items())


def _wide(cells: pandas.DataFrame, entries: "pandas.Series[Any]", absent: Any) -> pandas.DataFrame:
    """Rows and columns in the order in which the study names them first."""
    axes = row_axes(cells)
    rows = list(dict.fromkeys(cells[axes].itertuples(index=False, name=None)))
    columns = list(dict.fromkeys(cells[[*SETTING]].itertuples(index=False, name=None)))
    at = dict(zip(cells[[*axes, *SETTING]].itertuples(index=False, name=None), entries, strict=True))
    index = (
        pandas.MultiIndex.from_tuples(rows, names=axes) if len(axes) > 1 else pandas.Index([r for (r,) in rows], name="loss")
    )
    body = [[at.get((*row, *column), absent) for column in columns] for row in rows]
    return pandas.DataFrame(body, index=index, columns=pandas.MultiIndex.from_tuples(columns, names=SETTING), dtype=object)


def write_tables(frame: pandas.DataFrame, folder: Path) -> None:
    """Each table as CSV, Markdown and LaTeX; `cells.csv`, a row a cell; `seeds.csv`, a row a planned trial."""
    folder.mkdir(parents=True, exist_ok=True)
    found = cells(frame)
    flat_cells(found).to_csv(folder / "cells.csv", index=False)
    seeds(frame).to_csv(folder / "seeds.csv", index=False)
    for metric in METRICS:
        shown = table(found, metric)
        _flat(shown).to_csv(folder / f"{metric}.csv", index=False)
        (folder / f"{metric}.md").write_text(markdown(shown), encoding="utf-8")
        (folder / f"{metric}.tex").write_text(latex(shown, f"{METRICS[metric].title} (%)"), encoding="utf-8")


def flat_cells(cells: pandas.DataFrame) -> pandas.DataFrame:
    """Cells with their lists as text: the n-th of `..._values` belongs to the n-th of `seeds`, and is empty if it has none."""
    flat = cells.copy()
    for column in ["seeds", *(f"{metric}_values" for metric in METRICS)]:
        flat[column] = [";".join("" if value != value else str(value) for value in values) for values in cells[column]]
    return flat


def seeds(frame: pandas.DataFrame) -> pandas.DataFrame:
    """One row a planned trial with the axes that vary, its status, and the metrics it has, finished or not."""
    trials = _one_row_a_trial(frame)
    wanted = [
        "cell",
        *SETTING,
        "loss",
        *_varying(trials),
        "seed",
        "status",
        "failure",
        "seconds",
        *METRICS,
        "trial_id",
        "run_id",
    ]
    return trials[[column for column in wanted if column in trials]]


def markdown(shown: pandas.DataFrame) -> str:
    # Numbers are formatted already: tabulate would read 95.70 as a number and print 95.7.
    flat = _flat(shown).map(_markdown_text).rename(columns=_markdown_text)
    return str(flat.to_markdown(index=False, disable_numparse=True)) + "\n"


def _markdown_text(value: object) -> str:
    """Names come from users: neither a pipe nor a line break may end a table's cell, nor a tag start one of its own."""
    text = " ".join(str(value).split())
    for special in "\\|<*_`":
        text = text.replace(special, "\\" + special)
    return text


def latex(shown: pandas.DataFrame, caption: str) -> str:
    """A booktabs table, with every special character of a name escaped."""
    named = shown.reset_index()
    named.columns = named.columns.set_names([None, None])
    styler = named.style.format(escape="latex").format_index(axis=1, escape="latex").hide(axis=0)
    alignment = "l" * shown.index.nlevels + "r" * len(shown.columns)
    escaped_caption = caption.replace("%", r"\%")
    text: str = styler.to_latex(hrules=True, column_format=alignment, multicol_align="c", caption=escaped_caption)
    return text.replace("±", r"$\pm$").replace("–", "--")


def _flat(shown: pandas.DataFrame) -> pandas.DataFrame:
    """One line of column names, for formats that have no second."""
    flat = shown.copy()
    flat.columns = pandas.Index([", ".join(map(str, column)) for column in shown.columns])
    return flat.reset_index()


METRICS: dict[str, Metric] = {
    "test_accuracy_final": Metric("Final test accuracy", max),
    "test_accuracy_best": Metric("Best test accuracy", max),
    "train_clean_accuracy": Metric("Clean fit", max),
    "train_corrupted_fit": Metric("Corrupted fit", min),
}
