"""Where records are kept: a folder of one's own by default, a tracking server when one is named."""

import os
from dataclasses import dataclass
from pathlib import Path


class StoreFailed(RuntimeError):
    """The store cannot be read or written. What it holds is whole, and a later launch goes on from there."""


class NothingRecorded(LookupError):
    """The store has no such study yet."""


def home() -> Path:
    return Path(os.environ.get("TAUTUNE_HOME", ".tautune")).resolve()


@dataclass(frozen=True)
class Store:
    """An MLflow store. `database` and `artifacts` are set for the embedded one only: a server keeps its own."""

    uri: str
    database: Path | None = None
    artifacts: Path | None = None

    @property
    def exists(self) -> bool:
        """False only for an embedded store that nothing was recorded in yet: reading must not create it."""
        return self.database is None or self.database.exists()


def store(tracking_uri: str | None = None) -> Store:
    """The store named by the argument, by MLFLOW_TRACKING_URI, or the SQLite file in the home folder."""
    named = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
    if named:
        return Store(named)
    database = home() / "mlflow.db"
    return Store(f"sqlite:///{database}", database, home() / "artifacts")
