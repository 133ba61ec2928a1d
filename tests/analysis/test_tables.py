import math

import pandas
import pytest

from analysis.tables import METRICS, best, cells, latex, markdown, seeds, table, write_tables

METRIC = "test_accuracy_final"
SAME = {"model": "small_cnn", "optimizer": "sgd 0.05", "schedule": "cosine", "epochs": 20, "batch_size": 128}


def trial(loss, seed=0, value=None, noise="none", dataset="digits", status="finished", metric=METRIC, **other):
    """One row as `analysis.records.planned` gives it."""
    axes = {"dataset": dataset, "noise": noise, "loss": loss, **SAME, **other}
    cell = "|".join(map(str, axes.values()))
    row = {"trial_id": f"{cell}|{seed}", "cell": cell, "seed": seed, **axes, "status": status, "failure": None}
    return (
        row | {"run_id": None if status == "missing" else f"run of {cell}|{seed}"} | ({} if value is None else {metric: value})
    )


def shown(*rows, metric=METRIC):
    return table(cells(pandas.DataFrame(rows)), metric)


def test_mean_and_std_are_those_computed_by_hand():
    rows = [trial("ce", seed, value) for seed, value in enumerate([94.0, 95.0, 98.0])]
    cell = cells(pandas.DataFrame(rows)).iloc[0]
    assert cell[f"{METRIC}_mean"] == pytest.approx(287 / 3)
    assert cell[f"{METRIC}_std"] == pytest.approx(math.sqrt(13 / 3))  # ((5/3)^2 + (2/3)^2 + (7/3)^2) / 2
    assert cell[f"{METRIC}_values"] == (94.0, 95.0, 98.0)
    assert shown(*rows).loc["ce", ("digits", "none")] == "95.67 ± 2.08"


def test_one_seed_has_a_mean_and_no_spread():
    assert shown(trial("ce", 0, 95.7)).loc["ce", ("digits", "none")] == "95.70"
    assert math.isnan(cells(pandas.DataFrame([trial("ce", 0, 95.7)])).iloc[0][f"{METRIC}_std"])


def test_a_cell_that_lacks_seeds_says_how_many_it_has():
    rows = [trial("ce", 0, 90.0), trial("ce", 1, 92.0), trial("ce", 2, status="missing")]
    assert shown(*rows).loc["ce", ("digits", "none")] == "91.00 ± 1.41 (2 of 3)"


def test_the_last_metric_of_a_run_that_did_not_finish_is_not_averaged():
    rows = [trial("ce", 0, 90.0), trial("ce", 1, 10.0, status="failed"), trial("ce", 2, 20.0, status="running")]
    assert shown(*rows).loc["ce", ("digits", "none")] == "90.00 (1 of 3)"


@pytest.mark.parametrize("status", ["failed", "missing", "running", "interrupted"])
def test_a_cell_without_a_value_is_shown_by_its_status(status):
    found = shown(trial("ce", 0, 90.0), trial("mae", 0, status=status), trial("mae", 1, status=status))
    assert found.loc["mae", ("digits", "none")] == status


def test_a_cell_whose_seeds_fared_differently_says_so():
    found = shown(trial("mae", 0, status="failed"), trial("mae", 1, status="missing"), trial("mae", 2, status="missing"))
    assert found.loc["mae", ("digits", "none")] == "1 failed, 2 missing"


@pytest.mark.parametrize("metric", METRICS)
def test_no_row_or_column_is_dropped_when_nothing_ran(metric):
    rows = [trial(loss, noise=noise, status="missing") for noise in ("none", "symmetric 0.4") for loss in ("mae", "ce")]
    found = shown(*rows, metric=metric)
    assert list(found.index) == ["mae", "ce"]
    assert list(found.columns) == [("digits", "none"), ("digits", "symmetric 0.4")]
    assert (found == "missing").all(axis=None)


def test_a_finished_run_without_the_metric_is_not_applicable():
    assert shown(trial("ce", 0, 90.0), metric="train_corrupted_fit").loc["ce", ("digits", "none")] == "n/a"


def test_what_was_not_planned_is_a_dash():
    found = shown(trial("ce", 0, 90.0), trial("mae", 0, 80.0, noise="symmetric 0.4"))
    assert found.loc["ce", ("digits", "symmetric 0.4")] == "–"


def test_rows_and_columns_stand_in_the_order_of_the_study():
    found = shown(*(trial(loss, 0, 90.0, dataset=name) for name in ("zoo", "digits") for loss in ("mae", "ce", "gce 0.7")))
    assert list(found.index) == ["mae", "ce", "gce 0.7"]
    assert [dataset for dataset, _ in found.columns] == ["zoo", "digits"]


def test_another_axis_that_varies_tells_rows_apart():
    found = shown(trial("ce", 0, 90.0, epochs=10), trial("ce", 0, 95.0, epochs=20))
    assert found.index.names == ["loss", "epochs"]
    assert found.loc[("ce", 20), ("digits", "none")] == "95.00"


def test_cells_whose_labels_read_the_same_are_both_shown():
    rows = [trial("gce 0.7", 0, 90.0), trial("gce 0.7", 0, 80.0)]
    rows[1] |= {"cell": "another cell", "trial_id": "another trial"}
    assert sorted(shown(*rows)["digits", "none"]) == ["80.00", "90.00"]


def test_a_trial_that_failed_and_was_run_again_counts_once():
    rows = [trial("ce", 0, status="failed"), trial("ce", 0, 90.0), trial("ce", 1, 92.0)]
    found = cells(pandas.DataFrame(rows)).iloc[0]
    assert (found["planned"], found["finished"], found["failed"]) == (2, 2, 0)


def test_the_best_of_a_column_is_the_highest_accuracy_and_the_lowest_corrupted_fit():
    rows = [
        trial(loss, 0, value) | {"train_corrupted_fit": value}
        for loss, value in [("ce", 60.0), ("mae", 3.0), ("gce 1", 60.001)]
    ]
    found = cells(pandas.DataFrame(rows))
    assert list(best(found, METRIC)["digits", "none"]) == [True, False, True]
    assert list(best(found, "train_corrupted_fit")["digits", "none"]) == [False, True, False]


def test_one_value_alone_is_not_the_best():
    found = cells(pandas.DataFrame([trial("ce", 0, 90.0), trial("mae", status="failed")]))
    assert not best(found, METRIC).any(axis=None)


def test_latex_escapes_what_names_may_hold():
    text = latex(
        shown(trial("50%_&{x}", 0, 90.0, dataset="digit_pairs"), trial("50%_&{x}", 1, 92.0, dataset="digit_pairs")), "Final (%)"
    )
    assert r"50\%\_\&\{x\} & 91.00 $\pm$ 1.41 \\" in text
    assert r"digit\_pairs" in text
    assert r"\caption{Final (\%)}" in text


def test_markdown_keeps_trailing_zeros_and_a_pipe_in_a_name():
    line = markdown(shown(trial("a|b", 0, 95.7))).splitlines()[2]
    assert line.replace(" ", "") == r"|a\|b|95.70|"


def test_the_files_hold_every_seed_of_every_cell(tmp_path):
    frame = pandas.DataFrame([trial("ce", 0, 90.0), trial("ce", 1, status="failed"), trial("mae", 0, status="missing")])
    write_tables(frame, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"cells.csv", "seeds.csv"} | {
        f"{m}.{e}" for m in METRICS for e in ("csv", "md", "tex")
    }
    read = pandas.read_csv(tmp_path / "cells.csv", dtype=str)
    assert list(read["seeds"]) == ["0;1", "0"]
    assert read[f"{METRIC}_values"][0] == "90.0;"
    assert list(pandas.read_csv(tmp_path / "seeds.csv")["status"]) == ["finished", "failed", "missing"]


def test_seeds_keep_what_a_failed_run_had_reached():
    assert list(seeds(pandas.DataFrame([trial("ce", 0, 12.0, status="failed")]))[METRIC]) == [12.0]
