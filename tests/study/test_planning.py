"""From a study to its trials, their seeds, ids and order, and what is left to do."""

import os
import time

import pandas
import pytest

from study.definition import load
from study.document import BadStudy
from study.planning import at_once, estimated_seconds, plan, progress
from tests.study.good_study import FRAME, GOOD

NOTHING = pandas.DataFrame(columns=["run_id", "status", "trial_id", "cell", "seed"])


@pytest.fixture
def trials(tmp_path):
    """The planned trials of a study file with that content."""

    def read(content):
        path = tmp_path / "my.yaml"
        path.write_text(content)
        return plan(load(path))

    return read


@pytest.fixture
def refusal(trials):
    def refuse(content):
        with pytest.raises(BadStudy) as error:
            trials(content)
        return str(error.value)

    return refuse


def ids(trials):
    return [trial.id for trial in trials]


def recorded(*rows):
    return pandas.DataFrame(rows, columns=["trial_id", "status", "dataset", "model", "epochs", "seconds"])


@pytest.mark.parametrize(
    "same",
    [
        "".join(reversed(GOOD.splitlines(keepends=True))),
        GOOD + "noise: none\nschedule: {name: constant}\nbatch_size: 128\nseeds: 1\nunit_max: false\n",
        GOOD.replace("0.1", "0.10"),
        GOOD.replace("0.1", "1e-1"),
        GOOD.replace("{name: sgd, lr: 0.1}", "\n  lr: .1\n  momentum: 0\n  'name': \"sgd\""),
        GOOD.replace("epochs: 2", "epochs: 0x2").replace("digits", "'digits'").replace("ce", "{name: ce}"),
        GOOD.replace("study: small", "study: large\nabout: other words\ncpus: 2\ngpus: 0.5"),
        GOOD + "cases:\n  - {}\n",
    ],
)
def test_spelling_and_what_is_no_axis_do_not_enter_a_trials_id(trials, same):
    assert ids(trials(same)) == ids(trials(GOOD))


@pytest.mark.parametrize(
    "axis", ["loss: mae", "epochs: 3", "seeds: [1]", "noise: {name: symmetric, rate: 0.1}", "unit_max: true"]
)
def test_every_axis_enters_a_trials_id(trials, axis):
    other = "".join(line for line in GOOD.splitlines(keepends=True) if line.split(":")[0] != axis.split(":")[0]) + axis + "\n"
    assert set(ids(trials(other))).isdisjoint(ids(trials(GOOD)))


@pytest.mark.parametrize(
    ("seeds", "expected"), [("1", [0]), ("3", [0, 1, 2]), ("[5]", [5]), ("[3, 1]", [1, 3]), ("0o3", [0, 1, 2])]
)
def test_seeds_are_a_number_of_them_or_a_list(trials, seeds, expected):
    assert [trial.seed for trial in trials(GOOD + f"seeds: {seeds}\n")] == expected
    assert [trial.seed for trial in trials(FRAME + f"cases:\n  - {{loss: ce, seeds: {seeds}}}\n")] == expected


@pytest.mark.parametrize(
    "seeds", ["0", "-1", "1.5", "true", "many", "{a: 1}", "", "[]", "[-1]", "[1.5]", "[a]", "[true]", "[[1]]"]
)
def test_bad_seeds_are_refused_with_their_line(refusal, seeds):
    assert refusal(GOOD + f"about: x\nseeds: {seeds}\n").startswith("my.yaml:8: seed")
    assert refusal(GOOD + f"cases:\n  - seeds: {seeds}\n").startswith("my.yaml:8: seed")


def test_an_empty_list_of_seeds_is_called_empty(refusal):
    assert "empty" in refusal(GOOD + "seeds: []\n")


def test_too_many_seeds_are_refused_with_the_bound(refusal):
    assert "1000000" in refusal(GOOD + "seeds: 2345678\n").replace("1,000,000", "1000000")


def test_trials_are_planned_seed_by_seed_in_the_order_of_the_file(trials):
    content = GOOD.replace("loss: ce", "loss: [mae, ce]") + "seeds: [7, 3]\n"
    found = trials(content + "cases:\n  - {loss: {name: gce, q: 0.5}, seeds: [3, 5]}\n")
    assert [(trial.seed, trial.loss.label) for trial in found] == [
        (3, "mae"),
        (3, "ce"),
        (3, "gce 0.5"),
        (5, "gce 0.5"),
        (7, "mae"),
        (7, "ce"),
    ]


def test_a_plan_is_the_same_each_time(trials):
    content = GOOD.replace("loss: ce", "loss: [ce, mae, {name: imae, T: 8}]") + "seeds: 5\n"
    assert ids(trials(content)) == ids(trials(content))


def test_a_hundred_thousand_trials_are_planned_quickly(trials):
    content = GOOD.replace("loss: ce", "loss: [ce, mae, {name: gce, q: 0.5}, {name: imae, T: 8}]") + "seeds: 25000\n"
    start = time.perf_counter()
    found = trials(content)
    assert time.perf_counter() - start < 30
    assert len(found) == len(set(ids(found))) == 100_000


def test_progress_tells_trials_apart_by_what_is_recorded_of_them(trials):
    finished, failed, running, interrupted, fresh = trials(GOOD + "seeds: 5\n")
    frame = pandas.DataFrame(
        [
            (finished.id, "finished"),
            (failed.id, "failed"),
            (running.id, "running"),
            (interrupted.id, "interrupted"),
            ("of another plan", "finished"),
        ],
        columns=["trial_id", "status"],
    )
    all_trials = [finished, failed, running, interrupted, fresh]
    found = progress(all_trials, frame)
    assert (found.done, found.failed, found.to_run) == ([finished], [failed], [running, interrupted, fresh])
    assert found.total == 5
    again = progress(all_trials, frame, retry_failed=True)
    assert (again.done, again.failed, again.to_run) == ([finished], [], [failed, running, interrupted, fresh])
    assert again.total == 5


def test_without_records_everything_is_to_run(trials):
    planned = trials(GOOD + "seeds: 3\n")
    found = progress(planned, NOTHING)
    assert (found.done, found.failed, found.to_run) == ([], [], planned)


def test_the_time_left_is_the_median_epoch_of_past_runs_times_the_epochs_to_run(trials):
    to_run = trials(GOOD.replace("dataset: digits", "dataset: [digits, digit_pairs]") + "seeds: 3\n")
    frame = recorded(
        ("a", "finished", "digits", "small_cnn", 2, 2.0),  # 1 second an epoch
        ("b", "finished", "digits", "small_cnn", 10, 30.0),  # 3
        ("c", "finished", "digits", "small_cnn", 1, 100.0),  # 100, an outlier that a median forgives
        ("d", "finished", "digit_pairs", "small_cnn", 4, 20.0),  # 5
        ("e", "failed", "digits", "small_cnn", 2, 9999.0),
        ("f", "running", "digits", "small_cnn", 2, None),
    )
    # Three trials of 2 epochs at 3 seconds each, and three at 5.
    assert estimated_seconds(to_run, frame, at_once=1) == pytest.approx(3 * 2 * 3 + 3 * 2 * 5)
    assert estimated_seconds(to_run, frame, at_once=4) == pytest.approx(48 / 4)
    assert estimated_seconds([], frame, at_once=4) == 0


def test_data_without_a_past_run_are_taken_for_usual(trials):
    to_run = trials(GOOD.replace("small_cnn", "{name: small_cnn, width: 8}"))
    frame = recorded(
        ("a", "finished", "digits", "small_cnn", 1, 1.0),
        ("b", "finished", "digit_pairs", "small_cnn", 1, 4.0),
    )
    assert estimated_seconds(to_run, frame, at_once=1) == pytest.approx(2 * 2.5)


@pytest.mark.parametrize("frame", [NOTHING, recorded(), recorded(("a", "failed", "digits", "small_cnn", 2, 5.0))])
def test_without_a_finished_run_the_time_left_is_unknown(trials, frame):
    assert estimated_seconds(trials(GOOD), frame, at_once=1) is None


def test_as_many_trials_run_at_once_as_the_cpus_hold():
    cores = os.cpu_count() or 1
    assert at_once(1) == cores
    assert at_once(0.5) == 2 * cores
    assert at_once(cores) == 1
    assert at_once(cores + 1) == 1
    assert at_once(1000) == 1


def test_a_tenth_of_a_cpu_fits_ten_times_on_each():
    assert at_once(0.1) == 10 * (os.cpu_count() or 1)
