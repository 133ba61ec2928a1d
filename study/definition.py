"""What a study is: the validated content of one YAML file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Gt
from pydantic import BaseModel, StringConstraints, ValidationError

from study import catalog
from study.document import Document, Place, read_document
from study.overrides import apply
from trainables.choices import STRICT, BadChoice, field_rule, shown, unknown
from trainables.trial import AXES, DEFAULTS, MENUS, check

Grid = dict[str, tuple[Any, ...]]  # for each axis of a trial, the values it takes

STUDY_AXES = (
    "dataset",
    "model",
    "noise",
    "loss",
    "optimizer",
    "schedule",
    *(a for a in AXES if a not in MENUS and a != "seed"),
)
REQUIRED = tuple(axis for axis in STUDY_AXES if axis not in DEFAULTS)


NAME_RULE = "a name of letters, digits and . _ -"
MAX_SEEDS = 1_000_000


class Header(BaseModel):
    """The keys of a study file that are not axes."""

    model_config = STRICT
    # The name becomes a folder and an MLflow experiment: nothing in it may mean anything to a shell or a file system.
    study: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    about: str = ""
    cpus: Annotated[float, Gt(0)] = 1.0
    gpus: Annotated[float, Ge(0)] | None = None


KEYS = ("study", "about", *STUDY_AXES, "seeds", "cases", "cpus", "gpus")


@dataclass(frozen=True)
class Study:
    """Grids of trials under one name. `cpus` and `gpus` say what a trial occupies, and never change its id."""

    name: str
    about: str
    grids: tuple[Grid, ...]
    cpus: float = 1.0
    gpus: float | None = None


def load(reference: str | Path, overrides: Iterable[str] = ()) -> Study:
    """The study of that name in the catalog, or in that file; `overrides` are «epochs=5» or «optimizer.lr=0.1»."""
    document = read_document(catalog.find(reference))
    for override in overrides:
        apply(override, document, KEYS)
    return _validated(document)


def _validated(document: Document) -> Study:
    for key in document.data:
        if key not in KEYS:
            raise document.complaint(unknown("a study has no key", key, KEYS), (key,))
    header = _header(document)
    cases = document.data.get("cases", [])
    if not isinstance(cases, list):
        raise document.complaint("cases takes a list of mappings, each a grid of its own", ("cases",))
    base = _axes(document, document.data, ())
    missing = [axis for axis in REQUIRED if axis not in base]
    if missing and not cases:
        raise document.complaint(f"the study needs {_listed(missing)}")
    # Axes that are incomplete above their cases are only a frame for these, no grid of their own.
    grids = [] if missing else [base]
    grids += [_case(document, base, index, case) for index, case in enumerate(cases)]
    return Study(header.study, header.about, tuple(DEFAULT_AXES | grid for grid in grids), header.cpus, header.gpus)


def _header(document: Document) -> Header:
    given = {key: value for key, value in document.data.items() if key in Header.model_fields}
    try:
        return Header.model_validate(given)
    except ValidationError as error:
        key = error.errors()[0]["loc"][0]
    if key not in given:
        raise document.complaint(f"the study needs {key}")
    rule = NAME_RULE if key == "study" else field_rule(Header.model_fields[str(key)])
    raise document.complaint(f"{key} must be {rule}, but got {shown(given[str(key)])}", (key,))


def _case(document: Document, base: Grid, index: int, case: Any) -> Grid:
    path: Place = ("cases", index)
    if not isinstance(case, Mapping):
        raise document.complaint(f"a case is a mapping of axes, but got {shown(case)}", path)
    for key in case:
        if key not in (*STUDY_AXES, "seeds"):
            raise document.complaint(unknown("a case has no axis", key, (*STUDY_AXES, "seeds")), (*path, key))
    grid = {**base, **_axes(document, case, path)}
    if missing := [axis for axis in REQUIRED if axis not in grid]:
        raise document.complaint(f"this case needs {_listed(missing)}, here or above", path)
    return grid


def _axes(document: Document, given: Mapping[str, Any], path: Place) -> Grid:
    grid: dict[str, tuple[Any, ...]] = {}
    for axis in STUDY_AXES:
        if axis in given:
            grid[axis] = _values(document, axis, given[axis], (*path, axis))
    if "seeds" in given:
        grid["seed"] = _seeds(document, given["seeds"], (*path, "seeds"))
    return grid


def _values(document: Document, axis: str, given: Any, path: Place) -> tuple[Any, ...]:
    if not isinstance(given, list):
        return (_checked(document, axis, given, path),)
    if not given:
        raise document.complaint(f"{axis} is an empty list", path)
    return tuple(_checked(document, axis, value, (*path, index)) for index, value in enumerate(given))


def _seeds(document: Document, given: Any, path: Place) -> tuple[int, ...]:
    """`seeds: 3` stands for [0, 1, 2]; a list names them."""
    if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MAX_SEEDS:
        return tuple(range(given))
    if isinstance(given, list) and given:
        return _values(document, "seed", given, path)
    raise document.complaint(
        f"seeds must be a whole number in [1, {MAX_SEEDS}] or a list of seeds, but got {shown(given)}", path
    )


def _checked(document: Document, axis: str, value: Any, path: Place) -> Any:
    try:
        return check(axis, value)
    except BadChoice as error:
        raise document.complaint(str(error), (*path, *error.path)) from None


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


DEFAULT_AXES: dict[str, tuple[Any, ...]] = {axis: (check(axis, value),) for axis, value in DEFAULTS.items()}
