"""The studies that ship with Tautune, and how a study is found by name or path."""

from pathlib import Path

from study.document import BadStudy
from trainables.choices import unknown

FOLDER = Path(__file__).parent


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find(reference: str | Path) -> Path:
    """A path if it looks like one, else a name in the catalog."""
    path = Path(reference)
    if path.suffix in (".yaml", ".yml") or path.exists() or "/" in str(reference):
        if path.is_dir():
            raise BadStudy(f"{reference}: is a folder, not a study file")
        if not path.exists():
            raise BadStudy(f"{reference}: there is no such file")
        return path
    if str(reference) in names():
        return FOLDER / f"{reference}.yaml"
    raise BadStudy(unknown("no study is called", str(reference), names()) + ". A path to a YAML file works too")
