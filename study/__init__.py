"""Studies: what they are, and how they are launched, recorded and resumed.

from study import load, plan, run
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from study.definition import load
    from study.planning import plan
    from study.runner import run

__all__ = ["load", "plan", "run"]

_HOMES = {"load": "study.definition", "plan": "study.planning", "run": "study.runner"}


def __getattr__(name: str) -> Any:
    # Late, so that reading a study does not wait for Ray and MLflow to be imported.
    if name not in _HOMES:
        raise AttributeError(f"module 'study' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
