import json
import math
import re

import pandas
import pytest

from analysis import figures
from analysis.report import failures, findings, initial_weight, margin_heights, render, sampled_weights, write_report
from analysis.tables import METRICS, cells
from trainables.trial import DEFAULTS, MENUS, Trial

LOSSES = ["ce", "mae", {"name": "mae", "shift": {"tau": 2.0}}, {"name": "gce", "q": 0.7}]
NOISY = {"name": "symmetric", "rate": 0.4}
HISTOGRAMS = {
    "digits": {"edges": [-3.0, -2.5, -2.0, -1.5], "counts": [1, 4, 1], "num_classes": 10},
    "digit_pairs": {"edges": [-5.5, -5.0, -4.5, -4.0], "counts": [1, 4, 1], "num_classes": 100},
}
NO_HISTORY = pandas.DataFrame(columns=["run_id", "metric", "epoch", "value"])


def plan(noises=("none", NOISY), seeds=2):
    same = DEFAULTS | {"model": "small_cnn", "optimizer": {"name": "sgd", "lr": 0.05}, "epochs": 3}
    return [
        Trial.from_config(same | {"dataset": dataset, "noise": noise, "loss": loss, "seed": seed})
        for dataset in HISTOGRAMS
        for noise in noises
        for loss in LOSSES
        for seed in range(seeds)
    ]


def recorded(trials):
    """Every trial finished; ce learns wrong labels, mae learns little of a hundred classes."""
    rows = []
    for place, trial in enumerate(trials):
        axes = {axis: (getattr(trial, axis).label if axis in MENUS else value) for axis, value in trial.config.items()}
        clean = 10.0 if (axes["loss"], axes["dataset"]) == ("mae", "digit_pairs") else 95.0 + trial.seed
        row = {"trial_id": trial.id, "cell": trial.cell, **axes, "run_id": f"run{place}", "status": "finished", "failure": None}
        row |= {"test_accuracy_final": clean - 5, "test_accuracy_best": clean - 2, "train_clean_accuracy": clean}
        rows.append(row | ({} if axes["noise"] == "none" else {"train_corrupted_fit": 60.0 if axes["loss"] == "ce" else 3.0}))
    return pandas.DataFrame(rows)


def history_of(frame):
    rows = [(run_id, "test_accuracy", epoch, 30.0 * epoch) for run_id in frame["run_id"].dropna() for epoch in (1, 2, 3)]
    return pandas.DataFrame(rows, columns=NO_HISTORY.columns)


def page(frame, trials, study="who-underfits", histograms=HISTOGRAMS, history=None, **tags):
    margins = margin_heights(histograms)
    history = history_of(frame) if history is None else history
    return render(study, frame, tags, history, sampled_weights(trials, margins), margins)


def charts(html):
    found = re.findall(r'<script type="application/json" data-chart="(\w+)">(.*?)</script>', html, re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def without_script(html):
    return re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)


@pytest.fixture(scope="module")
def trials():
    return plan()


@pytest.fixture(scope="module")
def finished(trials):
    return recorded(trials)


@pytest.fixture(scope="module")
def whole(finished, trials):
    return page(finished, trials, about="Ten & hundred", git_commit="abc123", git_dirty="True", versions='{"torch": "2.14"}')


def test_the_page_tells_what_was_asked_and_how_it_was_made(whole):
    for text in ("who-underfits", "Ten &amp; hundred", "abc123", "not committed", "torch&nbsp;2.14", "final = last epoch"):
        assert text in whole


def test_the_page_has_all_tables_and_figures_and_says_how_to_read_each(whole):
    assert set(charts(whole)) == {"robustness", "learning_curves", "weight_functions"}
    assert all(metric.title in whole for metric in METRICS.values())
    assert whole.count('class="read"') >= len(METRICS) + 3


def test_nothing_on_the_page_is_loaded_from_a_network(whole):
    loads = r"""(?:src|href|action|data)\s*=\s*["']?\s*(?:https?:)?//|@import|url\(\s*["']?\s*(?:https?:)?//"""
    assert not re.search(loads, whole, re.IGNORECASE)
    assert "default-src 'none'" in whole  # and the browser is told to refuse any request
    assert not re.findall(r"<(?:link|iframe|img|object)\b", without_script(whole))
    assert '"url"' not in json.dumps(charts(whole))


def test_figures_offer_export_and_not_the_online_editor(whole):
    assert "source: false, compiled: false, editor: false" in whole


def test_html_in_names_is_shown_as_text(finished, trials):
    evil = "<script>alert(1)</script>"
    frame = finished.assign(
        loss=finished["loss"].replace("ce", evil), dataset=finished["dataset"].replace("digits", "<b>d</b>")
    )
    frame.loc[0, ["status", "failure"]] = ["failed", "<img src=x onerror=alert(2)>"]
    html = page(frame, trials, study=evil, about="</title><i>", versions="<u>")
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    for tag in ("<b>d</b>", "<img", "<i>", "<u>"):
        assert tag not in without_script(html)
    assert evil in json.dumps(charts(html)["robustness"])  # whole again once parsed


def test_missing_and_failed_cells_are_on_the_page(finished, trials):
    frame = finished.copy()
    hit, lost = frame["loss"] == "gce 0.7", frame["loss"] == "mae shift 2"
    frame.loc[hit, ["status", "failure"]] = ["failed", "Diverged: nan\nTraceback"]
    frame.loc[lost, ["status", "run_id"]] = ["missing", None]
    html = page(frame, trials)
    assert html.count(">failed</td>") == html.count(">missing</td>") == 4 * len(METRICS)
    assert "<td>Diverged: nan</td>" in html
    assert "in no figure of runs: mae shift 2, none, digits" in html


def test_a_study_in_which_nothing_ran_has_a_page(finished, trials):
    frame = finished.drop(columns=list(METRICS)).assign(status="missing", run_id=None)
    html = page(frame, trials, histograms={}, history=NO_HISTORY)
    assert html.count(">missing</td>") == 16 * len(METRICS)
    assert charts(html) == {}
    assert "Too few runs have finished" in html


def test_a_study_without_noise_has_no_scatter_and_says_why():
    trials = plan(noises=("none",), seeds=1)
    html = page(recorded(trials), trials)
    assert set(charts(html)) == {"learning_curves", "weight_functions"}
    assert "No finished run has wrong labels" in html
    assert " ± 0" not in html


def test_failures_are_grouped_by_their_first_line(finished):
    frame = finished.head(4).assign(status="failed", failure=["nan\nat 3", "nan\nat 4", None, "out of memory"])
    assert [(cause, count) for cause, count, _ in failures(frame)] == [
        ("nan", 2),
        ("no cause was recorded", 1),
        ("out of memory", 1),
    ]


def test_findings_name_the_loss_that_underfits_and_the_one_that_overfits(finished, trials):
    margins = margin_heights(HISTOGRAMS)
    said = findings(cells(finished), sampled_weights(trials, margins), margins)["digit_pairs"]
    found = {lead: (loss, text) for lead, loss, text in said}
    assert found["Lowest clean fit, without wrong labels"][0] == "mae"
    assert "10.00\u00a0%" in found["Lowest clean fit, without wrong labels"][1]
    assert found["Highest corrupted fit, symmetric 0.4"][0] == "ce"
    assert found["Least weight at the start"][0] == "mae"


def test_one_loss_alone_is_not_compared(finished):
    nothing = pandas.DataFrame(columns=["dataset", "loss", "margin", "weight"])
    assert findings(cells(finished[finished["loss"] == "ce"]), nothing, margin_heights({})) == {}


def test_mae_gives_a_hundred_classes_little_of_its_weight_at_the_start(trials):
    margins = margin_heights(HISTOGRAMS)
    share = initial_weight(sampled_weights(trials, margins), margins)
    for dataset, middle in (("digits", -2.25), ("digit_pairs", -4.75)):
        # MAE's weight as a share of its maximum is 4 p (1-p) = 1 / cosh(margin / 2)^2; the bins count 1, 4 and 1.
        low, mode, high = (1 / math.cosh((middle + step) / 2) ** 2 for step in (-0.5, 0, 0.5))
        assert share[dataset]["mae"] == pytest.approx((low + 4 * mode + high) / 6, abs=1e-4)
    assert share["digit_pairs"]["mae shift 2"] > 0.5


def test_a_loss_has_the_same_colour_in_every_figure(whole):
    ranges = set()
    for spec in charts(whole).values():
        scales = re.findall(
            r'"color": \{"field": "\w+", .*?"scale": \{"domain": (\[.*?\]), "range": (\[.*?\])', json.dumps(spec)
        )
        assert scales
        ranges |= set(scales)
    assert len(ranges) == 1


def test_curves_of_many_epochs_are_thinned_and_keep_the_last():
    rows = [("digits", "none", "ce", "ce", "test_accuracy", epoch, 1.0 * seed) for epoch in range(1, 302) for seed in (1, 3)]
    curves = figures.by_epoch(pandas.DataFrame(rows, columns=["dataset", "noise", "label", "loss", "metric", "epoch", "value"]))
    assert len(curves) <= figures.MOST_EPOCHS
    assert curves["epoch"].max() == 301
    assert set(zip(curves["mean"], curves["low"], curves["high"], strict=True)) == {(2.0, 1.0, 3.0)}


def test_a_study_that_was_never_launched_is_an_error_and_leaves_no_trace(tmp_path, monkeypatch):
    monkeypatch.setenv("TAUTUNE_HOME", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(LookupError, match="no launch of a study called 'nowhere' is recorded; recorded studies: none"):
        write_report("nowhere")
    assert list(tmp_path.iterdir()) == []
