"""A half-done trial on disk: one file a trial, replaced as a whole, deleted once the trial is recorded."""

import logging
import os
import pickle
from pathlib import Path
from typing import Any

import torch

log = logging.getLogger(__name__)


def save(folder: str, trial_id: str, state: dict[str, Any]) -> None:
    path = _path(folder, trial_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.draft")
    torch.save(state, draft)
    os.replace(draft, path)  # a reader sees the old file or the new one, never half of either


def load(folder: str, trial_id: str, device: torch.device) -> dict[str, Any] | None:
    """None where there is nothing to resume from, or nothing that can be read: the trial then starts anew."""
    path = _path(folder, trial_id)
    try:
        return torch.load(path, map_location=device, weights_only=True)
    except FileNotFoundError:
        return None
    except (RuntimeError, EOFError, pickle.UnpicklingError, OSError) as error:
        log.warning("checkpoint %s cannot be read (%s); the trial starts anew", path.name, error)
        return None


def delete(folder: str, trial_id: str) -> None:
    _path(folder, trial_id).unlink(missing_ok=True)


def _path(folder: str, trial_id: str) -> Path:
    return Path(folder) / f"{trial_id}.pt"
