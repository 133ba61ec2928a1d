"""The shape of the house, read from the source tree: which package may import what, and who may import Ray and MLflow."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ["trainables", "search_spaces", "analysis", "study"]  # each imports itself and what stands left of it
ALLOWED = {
    "ray": {"trainables/ray_adapter.py", "study/launch.py"},
    "mlflow": {"analysis/records.py", "study/record.py"},
}
SOURCES = sorted(path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def imported(source: str, path: str) -> set[str]:
    """The top-level packages that a file imports anywhere in it, also inside functions and by name."""
    found = set()
    for node in ast.walk(ast.parse(source, path)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=module, level=0):
                found.add(module)
            case ast.ImportFrom(module=module, level=level):
                package = path.split("/")[:-level]
                found.add(".".join([*package, module or ""]))
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                found.add(name)
    return {name.split(".")[0] for name in found}


def arrows_the_wrong_way(source: str, path: str) -> set[str]:
    package = path.split("/")[0]
    foreign = {*PACKAGES[PACKAGES.index(package) + 1 :], "tests", "benchmarks"}
    return imported(source, path) & foreign


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_there_to_be_read(package):
    assert any(path.startswith(f"{package}/") for path in SOURCES)


@pytest.mark.parametrize("path", SOURCES)
def test_imports_point_one_way(path):
    wrong = arrows_the_wrong_way((ROOT / path).read_text(), path)
    assert not wrong, f"{path} imports {sorted(wrong)}, but imports go {' <- '.join(PACKAGES)}"


@pytest.mark.parametrize("library", ALLOWED)
@pytest.mark.parametrize("path", SOURCES)
def test_ray_and_mlflow_are_imported_where_agreed_only(path, library):
    if path not in ALLOWED[library]:
        assert library not in imported((ROOT / path).read_text(), path), f"{library} belongs to {sorted(ALLOWED[library])}"


OUTSIDE = b"../" + b"shared"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_file_leads_out_of_the_project(package):
    for path in (ROOT / package).rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert OUTSIDE not in path.read_bytes(), f"{path.relative_to(ROOT)} mentions {OUTSIDE!r}"


@pytest.mark.parametrize(
    "source",
    [
        "import study",
        "import study.launch as launch",
        "from study import plan",
        "from study.plan import Plan",
        "def run():\n    from study import plan",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import study",
        "import importlib\nimportlib.import_module('study.plan')",
        "__import__('study')",
        "from ..study import plan",
    ],
)
def test_a_wrong_arrow_would_be_seen(source):
    assert arrows_the_wrong_way(source, "analysis/tables.py") == {"study"}
    assert arrows_the_wrong_way(source, "study/cli.py") == set()


@pytest.mark.parametrize(
    "source", ["from analysis import runs", "from . import home", "from .home import Store", "import studying"]
)
def test_a_right_arrow_is_let_pass(source):
    assert not arrows_the_wrong_way(source, "analysis/tables.py")
