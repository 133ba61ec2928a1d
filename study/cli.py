"""The command line. Exit codes: 0 all good, 1 some trials failed, 2 bad input, 130 interrupted."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.home import NothingRecorded, StoreFailed
from study.document import BadStudy

app = typer.Typer(
    name="tautune",
    help="Launch, tune and read studies of learning with wrong labels.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
out = Console() if sys.stdout.isatty() else Console(width=160)  # a file or a pipe has no width of its own
err = Console(stderr=True, soft_wrap=True)

StudyArgument = Annotated[str, typer.Argument(metavar="STUDY", help="A study of the catalog (`tautune list`), or a YAML file.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override the file: epochs=5, optimizer.lr=0.1")
]
TrackingUri = Annotated[
    str | None, typer.Option("--tracking-uri", help="An MLflow server; default MLFLOW_TRACKING_URI, else a SQLite file.")
]
Cpus = Annotated[float | None, typer.Option(min=0.01, help="CPUs, and threads, of a trial.")]
Gpus = Annotated[float | None, typer.Option(min=0, help="GPUs of a trial; 0.25 packs four trials on one.")]


def main() -> None:
    try:
        app()
    except (BadStudy, NothingRecorded) as error:
        sys.exit(_said(error, 2))
    except (StoreFailed, ConnectionError) as error:
        sys.exit(_said(error, 1))


def _said(error: Exception, code: int) -> int:
    err.print(" ".join(str(error.args[0]).split("\n")), markup=False, highlight=False)
    return code


@app.command("list")
def list_studies() -> None:
    """The studies that ship with Tautune.

    Example: `tautune list`
    """
    from study import catalog
    from study.definition import load
    from study.planning import plan

    table = Table("study", "trials", "about", box=None, pad_edge=False)
    for name in catalog.names():
        study = load(name)
        table.add_row(name, str(len(plan(study))), Text(study.about))
    out.print(table)


@app.command()
def plan(study: StudyArgument, set_: Set = None, tracking_uri: TrackingUri = None, cpus: Cpus = None) -> None:
    """What a study would run: counts, cells, and a time estimate from past runs. Starts and writes nothing.

    Example: `tautune plan demo --set epochs=5`
    """
    from analysis.records import runs
    from study.definition import load
    from study.display import duration
    from study.planning import at_once, estimated_seconds, progress
    from study.planning import plan as trials_of
    from study.view import cells_table

    found = load(study, set_ or ())
    trials = trials_of(found)
    recorded = runs(found.name, tracking_uri)
    state = progress(trials, recorded)
    out.print(cells_table(trials, recorded))
    counts = f"{len(state.done)} done, {len(state.to_run)} to run, {len(state.failed)} failed"
    out.print(f"{found.name}: {len(trials):,} trials in {len({trial.cell for trial in trials}):,} cells: {counts}")
    if state.to_run:
        side_by_side = at_once(cpus or found.cpus)
        seconds = estimated_seconds(state.to_run, recorded, side_by_side)
        known = f"about {duration(seconds)} with {side_by_side} at once" if seconds is not None else "unknown: no past run"
        out.print(f"time estimate: {known}")


@app.command()
def run(
    study: StudyArgument,
    set_: Set = None,
    tracking_uri: TrackingUri = None,
    address: Annotated[
        str | None, typer.Option(help="A running Ray cluster (`auto` or host:port); default: this machine.")
    ] = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run failed trials again.")] = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first failure.")] = False,
    checkpoint_seconds: Annotated[float, typer.Option(min=0, help="At most so much work of a trial is lost by a crash.")] = 5.0,
) -> None:
    """Train and record what is missing of a study. Run it again to go on after an interruption, or after the study has grown.

    Example: `tautune run demo`
    """
    from study.definition import load
    from study.runner import Options, carry_out
    from study.view import run_summary, watch

    found = load(study, set_ or ())
    options = Options(tracking_uri, address, cpus, gpus, retry_failed, fail_fast, checkpoint_seconds)
    outcome = carry_out(found, options, watch(out))
    out.print(run_summary(outcome, study), highlight=False)
    if outcome.reason == "interrupted":
        raise typer.Exit(130)
    raise typer.Exit(1 if outcome.failures or outcome.before.failed else 0)


@app.command()
def status(study: StudyArgument, tracking_uri: TrackingUri = None) -> None:
    """What is recorded of a study's latest launch, cell by cell, and why trials failed.

    Example: `tautune status demo`
    """
    from study.view import status_view

    out.print(status_view(_recorded_name(study, tracking_uri), tracking_uri), highlight=False)


@app.command()
def report(study: StudyArgument, tracking_uri: TrackingUri = None) -> None:
    """Write the report of a study: one HTML page that needs no network, and its tables as CSV, Markdown and LaTeX.

    Example: `tautune report demo`
    """
    from analysis.report import write_report

    out.print(f"report: {write_report(_recorded_name(study, tracking_uri), tracking_uri)}", highlight=False)


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535)] = 5000,
    browser: Annotated[bool, typer.Option(help="Open a browser window too.")] = True,
) -> None:
    """Browse the recorded runs in the MLflow UI, on 127.0.0.1 only. Ends with Ctrl-C.

    Example: `tautune ui --port 5001`
    """
    from study.mlflow_ui import serve

    raise typer.Exit(serve(port, browser and sys.stdout.isatty(), out))


@app.command()
def show(
    what: Annotated[str, typer.Argument(metavar="losses|noises|datasets|models|optimizers|schedules|spaces|schema")],
) -> None:
    """What a study may choose from, with parameters and ranges; `schema` prints the JSON schema of a study file.

    Example: `tautune show losses`
    """
    from study.schema import schema
    from study.view import LISTINGS
    from trainables.choices import unknown

    if what == "schema":
        sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
    elif what in LISTINGS:
        out.print(LISTINGS[what]())
    else:
        raise BadStudy(unknown("there is nothing to show called", what, [*LISTINGS, "schema"]))


def _recorded_name(reference: str, tracking_uri: str | None) -> str:
    """A study by its name in the store, its name in the catalog, or its file."""
    from analysis.records import studies
    from study import catalog
    from study.definition import load
    from trainables.choices import unknown

    recorded = studies(tracking_uri)
    if reference in recorded:
        return reference
    if Path(reference).suffix in (".yaml", ".yml") or reference in catalog.names():
        name = load(reference).name
        if name in recorded:
            return name
        raise BadStudy(f"nothing is recorded of {name} yet: tautune run {reference}")
    raise BadStudy(unknown("no study is called", reference, sorted({*recorded, *catalog.names()})))
