"""What is needed to make a run again: the commit, whether the tree was clean, the versions."""

import json
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("tautune", "torch", "torchvision", "numpy", "ray", "optuna", "mlflow")


def provenance() -> dict[str, str]:
    status = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "git_commit": _git("rev-parse", "HEAD") or "unknown",
        "git_dirty": "unknown" if status is None else str(bool(status)).lower(),
        "versions": json.dumps({"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}),
    }


def _git(*arguments: str) -> str | None:
    """Of the checkout this code runs from; None where it was installed without one."""
    folder = Path(__file__).resolve().parent
    try:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
