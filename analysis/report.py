"""The report of a study: one page that opens anywhere and asks nothing of the network, and its tables as files."""

import contextlib
import functools
import json
import math
import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import altair
import jinja2
import pandas
import torch
import vl_convert

from analysis import figures
from analysis.home import NothingRecorded, home
from analysis.records import histories, initial_margins, latest_launch_tags, latest_plan, planned, studies
from analysis.tables import METRICS, SETTING, STATUSES, best, cells, entry, row_axes, row_label, table, write_tables
from trainables.losses import build_loss
from trainables.trial import Trial


def write_report(study: str, tracking_uri: str | None = None, folder: Path | None = None) -> Path:
    """Read the study's latest launch from MLflow; write report.html and tables/ into the folder; return the page's path."""
    trials = latest_plan(study, tracking_uri)
    if not trials:
        known = ", ".join(studies(tracking_uri)) or "none"
        raise NothingRecorded(f"no launch of a study called {study!r} is recorded; recorded studies: {known}")
    frame = planned(study, tracking_uri)
    finished = frame[frame["status"] == "finished"]
    margins = margin_heights(_histograms(finished, tracking_uri))
    page = render(
        study,
        frame,
        tags=latest_launch_tags(study, tracking_uri),
        history=histories(finished, figures.CURVES, tracking_uri),
        weights=sampled_weights(trials, margins),
        margins=margins,
    )
    # A study's name is a user's: it may not lead out of the reports' folder.
    folder = folder or home() / "reports" / (re.sub(r"[^\w.-]+", "-", study).strip(".") or "study")
    write_tables(frame, folder / "tables")
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def _histograms(finished: pandas.DataFrame, tracking_uri: str | None) -> dict[str, dict[str, Any]]:
    """Of the first finished run of each data set; a run whose histogram is lost leaves out a panel, not the whole report."""
    found = {}
    for dataset, run_id in finished.drop_duplicates("dataset")[["dataset", "run_id"]].itertuples(index=False, name=None):
        with contextlib.suppress(LookupError):
            found[str(dataset)] = initial_margins(run_id, tracking_uri)
    return found


def render(
    study: str,
    frame: pandas.DataFrame,
    tags: Mapping[str, str],
    history: pandas.DataFrame,
    weights: pandas.DataFrame,
    margins: pandas.DataFrame,
) -> str:
    """The page, from what `planned` gives, the launch's tags, `histories` by run, and the frames of the weight figure."""
    found = cells(frame)
    losses = figures.losses_by_label(found)
    charts = {
        "robustness": figures.robustness(found),
        "learning_curves": figures.learning_curves(labelled(history, frame, found), losses),
        "weight_functions": figures.weight_functions(weights, margins, losses.values()),
    }
    pages = jinja2.Environment(loader=jinja2.PackageLoader("analysis"), autoescape=True, undefined=jinja2.StrictUndefined)
    pages.policies["json.dumps_kwargs"] = {"sort_keys": False, "allow_nan": False}
    return pages.get_template("report.html.jinja").render(
        study=study,
        about=tags.get("about", ""),
        counts={"planned": int(found["planned"].sum())} | {status: int(found[status].sum()) for status in STATUSES},
        failures=failures(frame),
        incomplete=int((found["finished"] < found["planned"]).sum()),
        cell_count=len(found),
        findings=findings(found, weights, margins),
        tables={metric: table_for_page(found, metric) for metric in METRICS},
        undrawn=[", ".join(cell) for cell in undrawn(found)],
        charts={name: chart and figures.specification(chart) for name, chart in charts.items()},
        commit=tags.get("git_commit", ""),
        dirty=tags.get("git_dirty", "").lower() in {"1", "true", "yes"},
        versions=_versions(tags.get("versions", "")),
        script=_javascript(),
    )


def labelled(history: pandas.DataFrame, frame: pandas.DataFrame, cells: pandas.DataFrame) -> pandas.DataFrame:
    """Histories of finished runs with what the figures tell curves apart by."""
    finished = frame.loc[frame["status"] == "finished", ["run_id", "cell"]]
    names = cells.assign(label=row_label(cells))[["cell", *SETTING, "loss", "label"]].drop_duplicates("cell")
    known = names.merge(finished, on="cell")  # the left order, which is the study's
    return known.merge(history, on="run_id")


def undrawn(cells: pandas.DataFrame) -> list[tuple[str, str, str]]:
    """Label, noise and data set of the cells that no figure can show, since none of their seeds has finished."""
    empty = cells.assign(label=row_label(cells))[cells["finished"] == 0]
    return [(str(label), str(noise), str(dataset)) for label, noise, dataset in empty[["label", "noise", "dataset"]].to_numpy()]


def failures(frame: pandas.DataFrame) -> list[tuple[str, int, str]]:
    """Causes with the number of trials each stopped and one of those trials, the most frequent first."""
    failed = frame[frame["status"] == "failed"]
    if failed.empty:
        return []
    told = failed["failure"] if "failure" in failed else pandas.Series(None, failed.index)
    causes = [
        str(text).strip().splitlines()[0] if text == text and str(text or "").strip() else "no cause was recorded"
        for text in told
    ]
    examples = failed["loss"].astype(str) + ", " + failed["noise"].astype(str) + ", " + failed["dataset"].astype(str)
    grouped = pandas.DataFrame({"cause": causes, "example": examples + ", seed " + failed["seed"].astype(str)}).groupby(
        "cause", sort=False
    )
    rows = [(str(cause), len(group), str(group["example"].iloc[0])) for cause, group in grouped]
    return sorted(rows, key=lambda row: -row[1])


def findings(
    cells: pandas.DataFrame, weights: pandas.DataFrame, margins: pandas.DataFrame
) -> dict[str, list[tuple[str, str, str]]]:
    """By data set: what was compared, the loss that stands out, and by how much. Nothing is said of fewer than two losses."""
    cells = cells.assign(label=row_label(cells), lost=cells["test_accuracy_best_mean"] - cells["test_accuracy_final_mean"])
    said: dict[str, list[tuple[str, str, str]]] = {}
    for (dataset, noise), group in cells.groupby([*SETTING], sort=False):
        said.setdefault(str(dataset), []).extend(_findings_of(group, str(noise)))
    for dataset, shares in initial_weight(weights, margins).items():
        if len(shares) > 1:
            low, high = 100 * shares.min(), 100 * shares.max()
            text = f"gives the initial margins {low:.1f}\u00a0% of its largest weight; {shares.idxmax()} {high:.1f}\u00a0%"
            said.setdefault(dataset, []).append(("Least weight at the start", str(shares.idxmin()), text))
    return {dataset: sentences for dataset, sentences in said.items() if sentences}


def _findings_of(cells: pandas.DataFrame, noise: str) -> list[tuple[str, str, str]]:
    said = []
    wrong = cells.dropna(subset="train_corrupted_fit_mean").set_index("label")["train_corrupted_fit_mean"]
    right = cells.dropna(subset="train_clean_accuracy_mean").set_index("label")["train_clean_accuracy_mean"]
    test = cells.dropna(subset="test_accuracy_final_mean").set_index("label")
    where = "without wrong labels" if noise == "none" else noise
    if len(right) > 1:
        text = f"fits {right.min():.2f}\u00a0% of the right labels; {right.idxmax()} fits {right.max():.2f}\u00a0%"
        said.append((f"Lowest clean fit, {where}", str(right.idxmin()), text))
    if len(wrong) > 1:
        text = f"agrees with {wrong.max():.2f}\u00a0% of the wrong labels; {wrong.idxmin()} with {wrong.min():.2f}\u00a0%"
        said.append((f"Highest corrupted fit, {where}", str(wrong.idxmax()), text))
    if len(wrong) > 1 and len(test) > 1:
        top = test.sort_values("test_accuracy_final_mean", kind="stable", ascending=False).iloc[0]
        said.append((f"Best final test accuracy, {where}", str(top.name), f"{entry(top, 'test_accuracy_final')}\u00a0%"))
        if test["lost"].max() > 0:
            text = f"ends {test['lost'].max():.2f} points below its best"
            said.append((f"Largest drop after the best epoch, {where}", str(test["lost"].idxmax()), text))
    return said


def initial_weight(weights: pandas.DataFrame, margins: pandas.DataFrame) -> dict[str, "pandas.Series[float]"]:
    """By data set, the mean of each loss's weight over the initial margins, as a share of its maximum."""
    means = {}
    for dataset, group in weights.groupby("dataset", sort=False):
        here = margins[margins["dataset"] == dataset]
        centres = (here["low"] + here["high"]) / 2
        share = here["height"] / here["height"].sum()
        curves = group.pivot(index="margin", columns="loss", values="weight")
        # Weights are sampled at the middle of each bin of the recorded histograms; elsewhere the nearest sample will do.
        at_centres = curves.reindex(centres, method="nearest")
        means[str(dataset)] = at_centres.mul(share.to_numpy(), axis="index").sum()[list(dict.fromkeys(group["loss"]))]
    return means


def margin_heights(histograms: Mapping[str, Mapping[str, Any]]) -> pandas.DataFrame:
    """Histograms as bars of height 1 at the mode, empty bins left out."""
    bars = [
        (dataset, histogram["num_classes"], low, high, count / max(histogram["counts"]))
        for dataset, histogram in histograms.items()
        for low, high, count in zip(histogram["edges"], histogram["edges"][1:], histogram["counts"], strict=False)
        if count
    ]
    return pandas.DataFrame(bars, columns=["dataset", "num_classes", "low", "high", "height"])


def sampled_weights(trials: Iterable[Trial], margins: pandas.DataFrame) -> pandas.DataFrame:
    """Each loss's weight, at most 1, where the initial margins lie and beyond, for data sets that have a histogram."""
    seen = margins[margins["height"] > 0.01]  # a stray margin must not squeeze the figure
    low, high = (min(-8, math.floor(seen["low"].min())), max(6, math.ceil(seen["high"].max()))) if len(seen) else (-8, 6)
    grid = torch.linspace(low, high, 8 * (high - low) + 1, dtype=torch.float64)
    classes = dict(zip(margins["dataset"], margins["num_classes"], strict=True))
    choices = {(trial.dataset.label, trial.loss.label): trial.loss for trial in trials if trial.dataset.label in classes}
    parts = [
        pandas.DataFrame({"dataset": dataset, "loss": label, "margin": grid.numpy(), "weight": weight.numpy().round(4)})
        for (dataset, label), choice in choices.items()
        for weight in [build_loss(choice, int(classes[dataset]), unit_max=True).weight(grid)]
    ]
    return (
        pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame(columns=["dataset", "loss", "margin", "weight"])
    )


def table_for_page(cells: pandas.DataFrame, metric: str) -> dict[str, Any]:
    """A table as the template lays it out: grouped headings, and of each entry whether it is a number and the best."""
    shown, bold = table(cells, metric), best(cells, metric)
    datasets = list(shown.columns.get_level_values(0))
    rows = zip(shown.index, shown.to_numpy(), bold.to_numpy(), strict=True)
    return {
        "title": METRICS[metric].title,
        "axes": row_axes(cells),
        "datasets": [(dataset, len(list(same))) for dataset, same in groupby(datasets)],
        "starts": [
            place for place, (one, before) in enumerate(zip(datasets, [None, *datasets], strict=False)) if one != before
        ],
        "noises": list(shown.columns.get_level_values(1)),
        "rows": [(name if isinstance(name, tuple) else (name,), _entries(texts, marks)) for name, texts, marks in rows],
    }


def _entries(texts: Iterable[str], marks: Iterable[bool]) -> list[dict[str, Any]]:
    """The mean apart from what follows it, since it is read first."""
    found = []
    for text, mark in zip(texts, marks, strict=True):
        number = re.match(r"\d+\.\d+", text)
        lead = number.group() if number else text
        found.append({"lead": lead, "rest": text[len(lead) :], "number": bool(number), "best": bool(mark)})
    return found


def _versions(text: str) -> dict[str, str]:
    """Recorded as JSON; shown as it is if it is not."""
    try:
        read = json.loads(text or "{}")
    except ValueError:
        read = text
    return {str(name): str(version) for name, version in read.items()} if isinstance(read, dict) else {"versions": str(read)}


@functools.cache
def _javascript() -> str:
    """Vega, vega-lite and vega-embed in one text that can stand inside a script element."""
    version = "_".join(altair.SCHEMA_VERSION.split(".")[:2])
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return re.sub("</(?=script)", r"<\\/", bundle, flags=re.IGNORECASE).replace("<!--", r"<\!--")
