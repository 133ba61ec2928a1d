"""The MLflow UI on this machine's own records."""

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser

from rich.console import Console

from analysis.home import store
from study.document import BadStudy

HOST = "127.0.0.1"


def serve(port: int, open_browser: bool, console: Console) -> None:
    """Run the server until Ctrl-C."""
    where = store()
    if where.uri.startswith("http"):
        console.print(f"the runs are at {where.uri}", highlight=False)
        return
    if not where.exists:
        raise BadStudy("nothing is recorded yet: tautune run demo")
    if _is_taken(port):
        raise BadStudy(f"port {port} is taken: tautune ui --port {port + 1}")
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", where.uri, "--host", HOST, "--port", str(port)]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    server = subprocess.Popen([*command, "--workers", "1"], env=environment, stdout=subprocess.DEVNULL)
    url = f"http://{HOST}:{port}"
    threading.Thread(target=_announce, args=(url, open_browser, console), daemon=True).start()
    try:
        server.wait()
    except KeyboardInterrupt:
        server.terminate()
        server.wait()


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _announce(url: str, open_browser: bool, console: Console) -> None:
    """Once the server answers, not before."""
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{url}/health", timeout=1)
            break
        except OSError:
            time.sleep(0.25)
    console.print(f"MLflow UI: {url}    (Ctrl-C ends it)", highlight=False)
    if open_browser:
        webbrowser.open(url)
