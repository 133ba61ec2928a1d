"""The command line as a person meets it: exit codes, one sentence for a mistake, and nothing written by reading."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from study import catalog, cli
from study.view import LISTINGS
from tests.study.good_study import GOOD
from trainables.trial import MENUS

COMMANDS = [command.name or command.callback.__name__ for command in cli.app.registered_commands]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, beside a home that does not exist yet."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("TAUTUNE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    yield here
    assert not (tmp_path / "home").exists()
    assert [path.name for path in here.iterdir() if path.name != "my.yaml"] == []


@pytest.fixture
def tautune(monkeypatch, capsys):
    """Run `tautune ...` in this process: exit code, standard output, standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tautune", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        return end.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture
def sentence(tautune):
    """The one line that refuses a command."""

    def refuse(*arguments):
        code, out, err = tautune(*arguments)
        assert (code, out, len(err.splitlines())) == (2, "", 1), err
        return err.strip()

    return refuse


def write(folder, content):
    (folder / "my.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    return "my.yaml"


def in_a_process(*arguments):
    command = [sys.executable, "-c", "from study.cli import main; main()", *arguments]
    root = Path(cli.__file__).parents[1]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["plan", "my.yaml"], "my.yaml:4: no loss is called 'cee'. Did you mean 'ce'? Known: "),
        (["run", "demo", "--set", "epochs=abc"], "--set epochs=abc: epochs must be a whole number >= 1, but got 'abc'"),
        (["status", "demo"], "nothing is recorded of demo yet: tautune run demo"),
    ],
)
def test_a_process_refuses_bad_input_in_one_line_and_without_a_trace(folder, arguments, sentence):
    write(folder, GOOD.replace("loss: ce", "loss: cee"))
    done = in_a_process(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(sentence)
    assert len(done.stderr.splitlines()) == 1


BAD = {
    "empty": ("", "my.yaml:1: is empty"),
    "comments": ("# nothing\n", "my.yaml:1: is empty"),
    "list": ("- a\n", "my.yaml:1: a study file is a mapping"),
    "binary": (bytes(range(256)), "my.yaml:1: is not a text file in UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), "my.yaml:1: is not a text file in UTF-8"),
    "tab": (GOOD + "noise:\n\tname: none\n", "my.yaml:8: is not valid YAML"),
    "unclosed bracket": (GOOD + "noise: [none\nseeds: 3\n", "my.yaml:8: is not valid YAML"),
    "NUL": (GOOD + "noise: no\0ne\n", "my.yaml:"),
    "tag": (GOOD + "noise: !!python/object:os.system ls\n", "my.yaml:7: 'ls' cannot be read"),
    "tag of a type": (GOOD + "unit_max: !!bool foo\n", "my.yaml:7: 'foo' cannot be read"),
    "self-reference": (GOOD + "noise: &a [*a]\n", "my.yaml:7: is nested too deeply"),
    "billion laughs": (
        "a: &a [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1 or ''}, *a{n - 1 or ''}]\n" for n in range(1, 25)),
        "my.yaml:1: is nested too deeply, or expands to too many values",
    ),
    "deep nesting": (GOOD + "noise: " + "[" * 5000 + "]" * 5000 + "\n", "my.yaml:"),
    "repeated key": (GOOD + "epochs: 3\n", "my.yaml:7: 'epochs' is given twice"),
    "unknown key": (GOOD + "epoch: 3\n", "my.yaml:7: a study has no key 'epoch'. Did you mean 'epochs'?"),
    "wrong type": (GOOD.replace("epochs: 2", "epochs: two"), "my.yaml:6: epochs must be a whole number >= 1, but got 'two'"),
    "rate": (GOOD + "noise: {name: symmetric, rate: 1.5}\n", "my.yaml:7: noise symmetric takes rate in [0, 1], but got 1.5"),
    "list of names": (
        GOOD.replace("study: small", "study: [a, b]"),
        "my.yaml:1: study must be a name of letters, digits and . _ -, but got a list",
    ),
    "list for q": (GOOD.replace("ce", "{name: gce, q: [0.1]}"), "my.yaml:4: loss gce takes q in (0, 1], but got a list"),
    "path for a name": (GOOD.replace("small\n", "../../x\n"), "my.yaml:1: study must be a name of letters"),
    "markup for a name": (GOOD.replace("small\n", "'[red]x[/red] <b>'\n"), "my.yaml:1: study must be a name of letters"),
    "negative gpus": (GOOD + "gpus: -1\n", "my.yaml:7: gpus must be "),
    "case": (GOOD + "cases:\n  - loss: cee\n", "my.yaml:8: no loss is called 'cee'"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_sentence(folder, sentence, name):
    content, start = BAD[name]
    assert sentence("plan", write(folder, content)).startswith(start)


@pytest.mark.parametrize("command", ["run", "status", "report"])
@pytest.mark.parametrize("name", ["empty", "binary", "wrong type", "path for a name"])
def test_every_command_refuses_a_bad_file_in_the_same_sentence(folder, sentence, command, name):
    path = write(folder, BAD[name][0])
    assert sentence(command, path) == sentence("plan", path)


@pytest.mark.parametrize(
    "override", ["epochs=abc", "epochs", "epoch=3", "loss.scale.tau=x", "loss=[", "study=../x", "epochs=a\nb"]
)
def test_a_bad_override_is_refused_in_one_sentence(folder, sentence, override):
    assert sentence("plan", write(folder, GOOD), "--set", override).startswith(f"--set {override.split()[0]}")


def test_a_refusal_shows_brackets_as_they_are(folder, sentence):
    assert "'[bold]ce[/bold]'" in sentence("plan", write(folder, GOOD.replace("loss: ce", "loss: '[bold]ce[/bold]'")))


@pytest.mark.parametrize("command", ["plan", "run", "status", "report"])
def test_a_study_that_does_not_exist_is_refused(sentence, command):
    assert sentence(command, "nosuch.yaml") == "nosuch.yaml: there is no such file"
    assert sentence(command, "dem").startswith("no study is called 'dem'. Did you mean 'demo'? Known: ")


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_folder_is_no_study_file(folder, sentence, command):
    assert sentence(command, str(folder)) == f"{folder}: is a folder, not a study file"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["report", "demo"], "nothing is recorded of demo yet: tautune run demo"),
        (["status", "demo"], "nothing is recorded of demo yet: tautune run demo"),
        (["status", "my.yaml"], "nothing is recorded of small yet: tautune run my.yaml"),
        (["ui"], "nothing is recorded yet: tautune run demo"),
    ],
)
def test_reading_what_is_not_recorded_yet_says_what_to_run_and_creates_no_store(folder, sentence, arguments, expected):
    write(folder, GOOD)
    assert sentence(*arguments) == expected


def test_the_list_has_every_study_of_the_catalog(tautune):
    code, out, err = tautune("list")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[1:] if not line.startswith(" ")] == catalog.names()
    assert "demo   72 " in out


def test_a_plan_counts_trials_and_cells_and_writes_nothing(tautune):
    code, out, err = tautune("plan", "demo")
    assert (code, err) == (0, "")
    assert "demo: 72 trials in 24 cells: 0 done, 72 to run, 0 failed" in out
    assert "time estimate: unknown: no past run" in out
    assert out.count("3 to run") == 24


def test_a_plan_obeys_overrides(folder, tautune):
    code, out, _ = tautune("plan", write(folder, GOOD), "--set", "seeds=4", "--set", "loss=[ce, mae]", "--cpus", "0.5")
    assert code == 0
    assert "small: 8 trials in 2 cells: 0 done, 8 to run, 0 failed" in out


@pytest.mark.parametrize("kind", LISTINGS)
def test_show_lists_what_a_study_may_choose_from(tautune, kind):
    code, out, err = tautune("show", kind)
    assert (code, err) == (0, "")
    menus = {menu.kind: menu for menu in MENUS.values()}
    menu = menus.get({"losses": "loss"}.get(kind, kind.removesuffix("s")))
    if menu is None:
        assert "loss.gce.q" in out
    else:
        assert [name for name in menu.entries if f"\n{name} " not in out] == []
        assert [key for name in menu.entries for key in menu.parameters(name).model_fields if f"{key} " not in out] == []


def test_show_covers_all_that_the_help_names():
    assert {"losses", "noises", "datasets", "models", "optimizers", "schedules", "spaces"} <= set(LISTINGS)


def test_show_schema_prints_a_json_schema(tautune):
    code, out, err = tautune("show", "schema")
    assert (code, err) == (0, "")
    jsonschema.Draft202012Validator.check_schema(json.loads(out))


def test_show_suggests_the_nearest_listing(sentence):
    assert sentence("show", "loses").startswith("there is nothing to show called 'loses'. Did you mean 'losses'? Known: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example_of_it(command):
    result = CliRunner().invoke(cli.app, [command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"tautune {command}" in result.output.split("Example")[1]


def test_the_help_names_every_command(tautune):
    code, out, _ = tautune("--help")
    assert code == 0
    assert [command for command in COMMANDS if f" {command} " not in out] == []


@pytest.mark.parametrize(
    "arguments", [["nosuch"], ["plan"], ["plan", "demo", "--nosuch"], ["plan", "demo", "--cpus", "0"], ["ui", "--port", "x"]]
)
def test_a_command_that_cannot_be_read_is_bad_input(tautune, arguments):
    code, out, err = tautune(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
