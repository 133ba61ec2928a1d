"""A small study, run for real and reported, and a Chromium to look at it. All of it lives in a folder that is removed."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas
import pytest
from playwright.sync_api import Browser, sync_playwright

from analysis.records import planned
from analysis.report import write_report
from tests.browser.machine import QUIET, chromium, eventually, processes_with

TAUTUNE = Path(sys.executable).with_name("tautune")
NAME = "seen-in-a-browser"
STUDY = f"""
study: {NAME}
about: A study of seconds, for a browser to look at
dataset: [digits, {{name: digit_pairs, train: 400, test: 200}}]
model: {{name: small_cnn, width: 4, hidden: 32}}
noise: [none, {{name: symmetric, rate: 0.4}}]
loss: [ce, mae, {{name: mae, scale: {{tau: 1.5}}}}]
optimizer: {{name: sgd, lr: 0.05, momentum: 0.9}}
epochs: 2
batch_size: 64
seeds: 2
"""


@dataclass(frozen=True)
class Kept:
    """What a study left: its records under `home`, its report, and its runs as a frame. `environment` leads a process there."""

    study: str
    home: Path
    report: Path
    runs: pandas.DataFrame
    environment: dict[str, str]

    @property
    def processes(self) -> dict[int, str]:
        return processes_with(f"TAUTUNE_HOME={self.home}")


@pytest.fixture(scope="session")
def kept() -> Iterator[Kept]:
    with tempfile.TemporaryDirectory(prefix="tautune-browser-") as folder:
        home, path = Path(folder) / "home", Path(folder) / "study.yaml"
        path.write_text(STUDY)
        # Only while the study runs: other tests of this session have homes of their own.
        with pytest.MonkeyPatch.context() as ours:
            ours.delenv("MLFLOW_TRACKING_URI", raising=False)
            ours.setenv("TAUTUNE_HOME", str(home))
            ours.setenv("HOME", folder)
            # In a process of its own: Ray keeps the token of the first HOME it has met for as long as a process lives.
            subprocess.run([TAUTUNE, "run", path], check=True, stdout=subprocess.DEVNULL)
            seen = Kept(NAME, home, write_report(NAME), planned(NAME), dict(os.environ))
        assert eventually(lambda: not seen.processes, 10), f"Ray has left {seen.processes}"
        yield seen
        assert not seen.processes, f"the tests have left {seen.processes}"


# Not of the session: as long as it is open, an event loop runs in this thread, which other tests could trip over.
@pytest.fixture(scope="module")
def browser(kept: Kept) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=chromium(), args=QUIET, env=kept.environment)
        yield chrome
        chrome.close()
    assert eventually(lambda: "chromium" not in " ".join(kept.processes.values()), 10), f"Chromium has left {kept.processes}"
