"""What a person sees of a launch: plain lines in a file, a live picture on a terminal."""

import dataclasses
import io
import re
import time

import pandas
import pytest
from rich.console import Console

from study.definition import load
from study.display import Display, duration
from study.planning import Progress, plan
from study.view import cells_table, watch

GOOD = """\
study: small
dataset: digits
model: small_cnn
noise: {name: symmetric, rate: 0.4}
loss: [ce, {name: mae, scale: {tau: 2}}]
optimizer: {name: sgd, lr: 0.1}
epochs: 10
"""
CE = "ce | symmetric 0.4 | digits | seed 0"
MAE = "mae scale 2 | symmetric 0.4 | digits | seed 0"
NOTHING = pandas.DataFrame(columns=["trial_id", "status"])


@pytest.fixture
def trials(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(GOOD)
    return plan(load(path))


@pytest.fixture
def file():
    return Console(file=io.StringIO(), width=160)


@pytest.fixture
def terminal():
    return Console(file=io.StringIO(), width=160, force_terminal=True, color_system=None)


def bracketed(trial):
    """A trial whose label rich would read as markup."""
    return dataclasses.replace(trial, loss=dataclasses.replace(trial.loss, label="sum [red]of[/red] [/] [bold]"))


def picture(display):
    """What one frame of the live picture shows."""
    display.console.file.truncate(0)
    display.console.file.seek(0)
    with display.live() as live:
        live.refresh()
        return display.console.file.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (9.9, "9.9 s"),
        (10, "10 s"),
        (12.4, "12 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599, "59 min 59 s"),
        (3599.6, "1 h 0 min"),
        (7500, "2 h 5 min"),
        (47 * 3600 + 59 * 60, "47 h 59 min"),
        (48 * 3600, "2 d 0 h"),
        (76 * 3600, "3 d 4 h"),
    ],
)
def test_a_duration_is_told_in_its_two_largest_units(seconds, text):
    assert duration(seconds) == text


def test_a_file_gets_one_plain_line_a_trial_that_ends(trials, file):
    display = Display(file, trials, done_before=3)
    with display.live():
        for trial in trials:
            display.begin(trial)
            display.facts(trial, {"parameters": 3})
            display.epochs(trial, [{"epoch": 1, "test_accuracy": 50.0}, {"epoch": 2}])
        assert file.file.getvalue() == ""
        display.epochs(trials[0], [{"epoch": 10, "test_accuracy": 91.234}])
        display.finish(trials[0], {"test_accuracy_final": 91.234})
        display.fail(trials[1], "ValueError: the loss is not finite", "Traceback ...")
    first, second = file.file.getvalue().splitlines()
    assert re.fullmatch(re.escape(f"[4/5] {CE}: test 91.23 % in ") + r"[\d.]+ s; about [\d.]+ s left", first)
    assert second == f"[5/5] {MAE}: failed: ValueError: the loss is not finite; about 0.0 s left"


def test_a_trial_that_fails_before_it_began_is_told_too(trials, file):
    display = Display(file, trials, done_before=0)
    display.fail(trials[0], "worker died", "")
    assert file.file.getvalue() == f"[1/2] {CE}: failed: worker died; starting\n"


def test_the_time_left_follows_from_the_epochs_done(trials, terminal):
    display = Display(terminal, trials, done_before=0)
    display.begin(trials[0])
    assert "starting" in picture(display)
    display.started = time.monotonic() - 36_000
    display.epochs(trials[0], [{"epoch": 4}, {"epoch": 5}])
    assert "about 30 h 0 min left" in picture(display)  # two hours an epoch, 15 epochs to go
    display.fail(trials[1], "no memory", "")  # its ten epochs are not to be waited for
    assert "about 3 h 20 min left" in picture(display)


def test_the_live_picture_shows_the_count_the_time_left_and_a_line_a_running_trial(trials, terminal):
    display = Display(terminal, trials, done_before=3)
    for trial in trials:
        display.begin(trial)
    display.epochs(trials[0], [{"epoch": 7, "test_accuracy": 88.5}])
    lines = [" ".join(line.split()) for line in picture(display).splitlines()]
    head = next(line for line in lines if "3/5 trials" in line)
    assert "left" in head
    assert any(f"{CE} epoch 7/10 test 88.50 %" in line for line in lines)
    assert any(f"{MAE} epoch 0/10" in line for line in lines)
    assert "failed" not in head


def test_the_live_picture_counts_failures_and_forgets_trials_that_ended(trials, terminal):
    display = Display(terminal, trials, done_before=3)
    for trial in trials:
        display.begin(trial)
    display.finish(trials[0], {})
    display.fail(trials[1], "ValueError: no", "")
    shown = picture(display)
    assert "5/5 trials" in shown
    assert "1 failed" in shown
    assert CE not in shown
    assert MAE not in shown


def test_the_live_picture_is_drawn_before_the_first_trial_begins(trials, terminal):
    assert "0/2 trials" in picture(Display(terminal, trials, done_before=0))
    assert "0/0 trials" in picture(Display(terminal, [], done_before=0))


def test_labels_with_brackets_are_shown_as_they_are(trials, file, terminal):
    trial = bracketed(trials[0])
    display = Display(terminal, [trial], done_before=0)
    display.begin(trial)
    assert trial.label in picture(display)
    display = Display(file, [trial], done_before=0)
    display.fail(trial, "KeyError: [bold]x[/bold]", "")
    assert file.file.getvalue() == f"[1/1] {trial.label}: failed: KeyError: [bold]x[/bold]; starting\n"


def test_the_table_of_cells_shows_labels_with_brackets_as_they_are(trials, file):
    trial = bracketed(trials[0])
    file.print(cells_table([trial], NOTHING))
    assert trial.loss.label in file.file.getvalue()


def test_the_table_of_cells_counts_the_seeds_by_state_and_shows_what_varies(trials, file):
    more = [dataclasses.replace(trial, seed=seed, epochs=epochs) for trial in trials for seed in (0, 1) for epochs in (2, 3)]
    file.print(cells_table(more, pandas.DataFrame([(more[0].id, "finished")], columns=["trial_id", "status"])))
    head, *lines = [line.split() for line in file.file.getvalue().splitlines()]
    assert head == ["dataset", "noise", "loss", "epochs", "seeds", "state"]
    assert len(lines) == 4
    assert lines[0] == ["digits", "symmetric", "0.4", "ce", "2", "2", "1", "finished,", "1", "to", "run"]


def test_a_long_table_of_cells_says_how_many_it_leaves_out(trials, file):
    many = [dataclasses.replace(trials[0], epochs=epochs) for epochs in range(1, 1_302)]
    file.print(cells_table(many, NOTHING))
    assert len(file.file.getvalue().splitlines()) == 1 + 200 + 1
    assert "... and 1,101 more cells" in file.file.getvalue()


def test_a_display_counts_what_was_done_before(trials, file):
    display = watch(file)(Progress(done=[trials[0]], failed=[], to_run=[trials[1]]))
    assert (display.ended, display.total) == (1, 2)
