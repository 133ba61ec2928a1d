"""`tautune ui`: what a person finds there, and that nothing of it stays when it ends."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Kept
from tests.browser.machine import HOST, can_be_bound, eventually, free_port, listening_addresses

TAUTUNE = Path(sys.executable).with_name("tautune")
RUN = "ce | none | digits | seed 0"
LOOPBACK = "0100007F"


@dataclass(frozen=True)
class Ui:
    process: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


@contextmanager
def started(kept: Kept) -> Iterator[Ui]:
    """From the line that announces it, in a process group of its own, as a shell starts a command."""
    ui = Ui(_tautune_ui(kept, port := free_port()), port)
    try:
        assert ui.process.stdout is not None
        announced = ui.process.stdout.readline()
        assert ui.url in announced, f"tautune ui has said {announced!r} and returned {ui.process.poll()}"
        assert urllib.request.urlopen(f"{ui.url}/health", timeout=10).status == 200
        yield ui
    finally:
        if ui.process.poll() is None:
            os.killpg(ui.process.pid, signal.SIGINT)
        try:
            ui.process.wait(timeout=20)
        finally:
            for pid, command in kept.processes.items():
                if f"--port {ui.port} " in command:
                    os.kill(pid, signal.SIGKILL)
            ui.process.communicate()


def _tautune_ui(kept: Kept, port: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(TAUTUNE), "ui", "--port", str(port), "--no-browser"],
        env=kept.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def ui(kept: Kept) -> Iterator[Ui]:
    with started(kept) as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Tall enough for every row of the table to be drawn."""
    context = browser.new_context(viewport={"width": 1600, "height": 1500})
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


def open_study(page: Page, ui: Ui, study: str) -> None:
    """MLflow 3 starts on its pages for agents; a study's runs are under «Model training»."""
    page.goto(f"{ui.url}/#/experiments")
    page.get_by_text("Model training", exact=True).click()
    page.get_by_role("link", name=study, exact=True).click()


def unfold_launch(page: Page, trials: int) -> None:
    launch = page.get_by_role("link", name=f"launch of {trials} trials", exact=True)
    page.get_by_role("gridcell").filter(has=launch).get_by_role("button").click()


def test_the_study_is_listed(page: Page, ui: Ui, kept: Kept) -> None:
    page.goto(f"{ui.url}/#/experiments")
    expect(page.get_by_role("link", name=kept.study, exact=True)).to_be_visible()


def test_a_study_opens_on_its_launch_which_unfolds_into_a_named_run_for_every_trial(page: Page, ui: Ui, kept: Kept) -> None:
    open_study(page, ui, kept.study)
    names = page.get_by_role("gridcell").get_by_role("link")
    expect(names).to_have_text(["launch of 24 trials"])
    unfold_launch(page, 24)
    expect(names).to_have_count(25)
    labels = (
        kept.runs[["loss", "noise", "dataset"]].agg(" | ".join, axis="columns") + " | seed " + kept.runs["seed"].astype(str)
    )
    assert RUN in set(labels)
    assert sorted(names.all_inner_texts()[1:]) == sorted(labels)


def test_a_run_shows_its_metrics_its_params_and_its_launch(page: Page, ui: Ui, kept: Kept) -> None:
    open_study(page, ui, kept.study)
    unfold_launch(page, 24)
    page.get_by_role("link", name=RUN, exact=True).click()
    expect(page.get_by_role("heading", name=RUN)).to_be_visible()
    run = kept.runs.query("loss == 'ce' and noise == 'none' and dataset == 'digits' and seed == 0").iloc[0]
    shown = {"loss.name": "ce", "dataset.name": "digits", "optimizer.lr": "0.05", "model.width": "4", "epochs": "2"}
    shown |= {metric: f"{run[metric]:g}" for metric in ("test_accuracy_final", "test_accuracy_best", "realised_noise_rate")}
    for name, value in shown.items():
        row = page.get_by_role("row").filter(has=page.get_by_text(name, exact=True))
        expect(row).to_have_text(re.compile(rf"{re.escape(name)}\s*{re.escape(value)}"))
    expect(page.get_by_role("link", name="launch of 24 trials")).to_be_visible()


def test_the_pages_ask_nothing_of_any_other_host(page: Page, ui: Ui, kept: Kept) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    open_study(page, ui, kept.study)
    unfold_launch(page, 24)
    page.get_by_role("link", name=RUN, exact=True).click()
    page.get_by_text("test_accuracy_final", exact=True).wait_for()
    assert {urlsplit(url).netloc for url in asked if not url.startswith("data:")} == {f"{HOST}:{ui.port}"}


def test_the_server_listens_on_this_machine_only(ui: Ui) -> None:
    assert listening_addresses(ui.port) == {LOOPBACK}


def test_a_taken_port_is_one_sentence_that_names_another(ui: Ui, kept: Kept) -> None:
    command = [str(TAUTUNE), "ui", "--port", str(ui.port), "--no-browser"]
    done = subprocess.run(command, env=kept.environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"port {ui.port} is taken: tautune ui --port {ui.port + 1}\n"


@pytest.mark.parametrize(
    ("send", "number"),
    [
        pytest.param(os.kill, signal.SIGINT, id="sigint_to_the_command_alone"),
        pytest.param(os.killpg, signal.SIGINT, id="ctrl_c_which_reaches_its_whole_group"),
        pytest.param(os.kill, signal.SIGTERM, id="sigterm"),
    ],
)
def test_a_signal_ends_it_and_leaves_no_process_and_no_port(send, number: signal.Signals, kept: Kept) -> None:
    before = set(kept.processes)
    with started(kept) as running:
        assert set(kept.processes) > before
        send(running.process.pid, number)
        returned = running.process.wait(timeout=20)
        assert eventually(lambda: set(kept.processes) <= before, 5), f"left behind: {kept.processes}"
        assert listening_addresses(running.port) == set()
        assert can_be_bound(running.port)
        assert number != signal.SIGINT or returned == 0
