"""Chromium, processes and ports of this machine."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
HOST = "127.0.0.1"
LISTENS = "0A"


def chromium(path: Path = CHROMIUM) -> str:
    """Its path. Without it the tests fail: a page that nobody has opened is not known to work."""
    if not path.exists():
        pytest.fail(f"there is no {path}: the tests of pages need the Debian package chromium (apt-get install chromium)")
    return str(path)


def processes_with(setting: str) -> dict[int, str]:
    """The processes that were started with `NAME=value` in their environment, which their own children inherit."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if setting.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it has ended, or is another user's
    return found


def listening_addresses(port: int) -> set[str]:
    """Where the port is open, as the kernel writes it: 127.0.0.1 is 0100007F, every address is 00000000."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    local = [row[1].split(":") for row in rows if row[3] == LISTENS]
    return {address for address, number in local if int(number, 16) == port}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def can_be_bound(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # as servers do: a connection that was closed is not a server
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def eventually(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return met
