"""`--set epochs=5`, `--set optimizer.lr=0.1`: a study file changed from the command line."""

from collections.abc import Iterable
from typing import Any

from study.document import BadStudy, Document, read_value
from trainables.choices import shown, unknown


def apply(override: str, document: Document, keys: Iterable[str]) -> None:
    """Change the document as if the file said so, its cases included: what is set on the command line holds everywhere."""
    source = f"--set {override}"
    try:
        axis, inner, value = _parsed(override, keys)
        grids = [document.data, *_cases_with(axis, document)]
        if not inner:
            for grid in grids:
                grid.pop(axis, None)
            document.data[axis] = value
        else:
            for grid in [grid for grid in grids if axis in grid] or [document.data]:
                grid[axis] = _with_parameter(grid.get(axis), inner, value)
    except BadStudy as error:
        raise BadStudy(f"{source}: {error}") from None
    _attribute(document, axis, source)


def _parsed(override: str, keys: Iterable[str]) -> tuple[str, list[str], Any]:
    key, equals, text = override.partition("=")
    axis, *inner = key.strip().split(".")
    if not equals:
        raise BadStudy("takes key=value, such as epochs=5 or optimizer.lr=0.1")
    if axis == "cases":
        raise BadStudy("cases are set in the file only")
    if axis not in keys:
        raise BadStudy(unknown("a study has no key", axis, keys))
    return axis, inner, read_value(text)


def _cases_with(axis: str, document: Document) -> list[dict[str, Any]]:
    cases = document.data.get("cases")
    return [case for case in cases if isinstance(case, dict) and axis in case] if isinstance(cases, list) else []


def _with_parameter(choice: Any, inner: list[str], value: Any) -> dict[str, Any]:
    if isinstance(choice, str):
        choice = {"name": choice}
    if not isinstance(choice, dict):
        raise BadStudy(f"sets a parameter of one choice, but the study has {shown(choice)}; give the whole value")
    key, *rest = inner
    return choice | {key: _with_parameter(choice.get(key, {}), rest, value) if rest else value}


def _attribute(document: Document, axis: str, source: str) -> None:
    """Complaints about the axis name the command line. Paths are (axis, ...) above, ("cases", index, axis, ...) in a case."""
    for path in [path for path in document.origins if axis in path[:3:2]]:
        document.origins[path] = source
    document.origins[(axis,)] = source
