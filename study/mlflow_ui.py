"""The MLflow UI on this machine's own records."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType

from rich.console import Console

from analysis.home import store
from analysis.records import studies
from study.document import BadStudy

HOST = "127.0.0.1"
ANSWER_SECONDS = 60


def serve(port: int, open_browser: bool, console: Console) -> int:
    """Run the server until Ctrl-C or SIGTERM, and end all of its processes; returns its exit code if it ends by itself."""
    where = store()
    if where.uri.startswith("http"):
        console.print("the runs are on the server that MLFLOW_TRACKING_URI names", highlight=False)
        return 0
    if not where.exists:
        raise BadStudy("nothing is recorded yet: tautune run demo")
    if _is_taken(port):
        raise BadStudy(f"port {port} is taken: tautune ui --port {port + 1}")
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", where.uri, "--host", HOST, "--port", str(port)]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    # In a group of its own: a terminal's Ctrl-C must reach us alone, and its end must take its workers along.
    server = subprocess.Popen([*command, "--workers", "1"], env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    try:
        if _answers(f"http://{HOST}:{port}/health", server):
            _announce(f"http://{HOST}:{port}", studies(), open_browser, console)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        _end(server)


def _as_ctrl_c(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _answers(url: str, server: "subprocess.Popen[bytes]") -> bool:
    deadline = time.monotonic() + ANSWER_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(url, timeout=1):
            return True
        time.sleep(0.25)
    return False


def _announce(url: str, recorded: Mapping[str, str], open_browser: bool, console: Console) -> None:
    console.print(f"MLflow UI: {url}    (Ctrl-C ends it)", highlight=False)
    # The front page leads to MLflow's pages for language models; these lead to the runs.
    links = {name: f"{url}/#/experiments/{number}/runs?workflowType=machine_learning" for name, number in recorded.items()}
    for name, link in links.items():
        console.print(f"  {name}: {link}", highlight=False, soft_wrap=True)
    if open_browser:
        threading.Thread(target=webbrowser.open, args=(next(iter(links.values()), url),), daemon=True).start()


def _end(server: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        server.wait(10)
    with suppress(ProcessLookupError):  # its workers, should they outlive it
        os.killpg(server.pid, signal.SIGKILL)
