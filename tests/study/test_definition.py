"""What a study file means: its axes, cases, overrides and name."""

import pytest

from study import catalog
from study.definition import REQUIRED, load
from study.document import BadStudy
from study.planning import plan
from tests.study.good_study import FRAME, GOOD
from trainables.trial import DEFAULTS, check

WITH_CASE = GOOD + "cases:\n  - {epochs: 7, loss: mae, optimizer: {name: sgd, lr: 0.3}, seeds: [4]}\n"


@pytest.fixture
def study(tmp_path):
    """The study that a file with that content defines."""

    def read(content, *overrides):
        path = tmp_path / "my.yaml"
        path.write_text(content)
        return load(path, overrides)

    return read


@pytest.fixture
def trials(study):
    return lambda content, *overrides: plan(study(content, *overrides))


@pytest.fixture
def refusal(study):
    def refuse(content, *overrides):
        with pytest.raises(BadStudy) as error:
            study(content, *overrides)
        return str(error.value)

    return refuse


def labels(trials, *axes):
    return [tuple(getattr(getattr(trial, axis), "label", getattr(trial, axis)) for axis in axes) for trial in trials]


def ids(trials):
    return [trial.id for trial in trials]


def test_what_a_study_leaves_out_takes_its_default(study, trials):
    (trial,) = trials(GOOD)
    assert {axis: getattr(trial, axis) for axis in DEFAULTS} == {axis: check(axis, value) for axis, value in DEFAULTS.items()}
    found = study(GOOD)
    assert (found.name, found.about, found.cpus, found.gpus) == ("small", "", 1.0, None)


@pytest.mark.parametrize("axis", REQUIRED)
def test_a_study_without_a_required_axis_is_refused(refusal, axis):
    content = "".join(line for line in GOOD.splitlines(keepends=True) if not line.startswith(axis))
    assert refusal(content) == f"my.yaml:1: the study needs {axis}"


def test_all_missing_axes_are_named_at_once(refusal):
    assert refusal("study: small\n") == "my.yaml:1: the study needs dataset, model, loss, optimizer and epochs"


def test_lists_multiply(trials):
    content = GOOD.replace("loss: ce", "loss: [ce, mae]") + "noise: [none, {name: symmetric, rate: 0.4}]\nseeds: 3\n"
    found = trials(content + "batch_size: [32, 64]\nunit_max: [true, false]\n")
    assert len(found) == len(set(ids(found))) == 2 * 2 * 3 * 2 * 2
    assert len({trial.cell for trial in found}) == 2 * 2 * 2 * 2


def test_a_case_adds_a_grid_that_overrides_the_axes_above_it(trials):
    found = labels(trials(WITH_CASE), "loss", "epochs", "optimizer", "seed", "dataset")
    assert found == [("ce", 2, "sgd 0.1", 0, "digits"), ("mae", 7, "sgd 0.3", 4, "digits")]


def test_a_case_multiplies_with_the_lists_above_it(trials):
    content = (
        FRAME + "loss: [ce, mae]\nseeds: 2\ncases:\n  - noise: [{name: symmetric, rate: 0.2}, {name: symmetric, rate: 0.4}]\n"
    )
    assert len(trials(content)) == 2 * 2 + 2 * 2 * 2


def test_axes_that_are_incomplete_above_their_cases_are_a_frame_and_no_grid(trials):
    found = trials(FRAME + "cases:\n  - loss: mae\n  - {loss: [ce, {name: gce, q: 0.5}], epochs: 5}\n")
    assert labels(found, "loss", "epochs") == [("mae", 2), ("ce", 5), ("gce 0.5", 5)]


def test_a_case_without_a_required_axis_is_refused_with_its_line(refusal):
    assert refusal(FRAME + "cases:\n  - loss: ce\n  - seeds: 2\n") == "my.yaml:8: this case needs loss, here or above"


@pytest.mark.parametrize(
    ("cases", "sentence"),
    [
        ("cases: 5\n", "my.yaml:7: cases takes a list of mappings"),
        ("cases: {loss: ce}\n", "my.yaml:7: cases takes a list of mappings"),
        ("cases:\n", "my.yaml:7: cases takes a list of mappings"),
        ("cases:\n  - ce\n", "my.yaml:8: a case is a mapping of axes, but got 'ce'"),
        ("cases:\n  - [ce]\n", "my.yaml:8: a case is a mapping of axes, but got a list"),
        ("cases:\n  - {cases: []}\n", "my.yaml:8: a case has no axis 'cases'"),
        ("cases:\n  - loss: ce\n    study: other\n", "my.yaml:9: a case has no axis 'study'"),
    ],
)
def test_cases_that_are_no_list_of_mappings_are_refused(refusal, cases, sentence):
    assert refusal(GOOD + cases).startswith(sentence)


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (GOOD + "cases:\n  - loss: [ce, mae]\n", 2),
        (GOOD + "cases:\n  - {}\n  - epochs: 2\n", 1),
        (GOOD + "seeds: [1, 1, 2]\n", 2),
        (GOOD.replace("loss: ce", "loss: [mae, {name: mae}, {name: mae, factor: 1}]"), 1),
    ],
)
def test_a_trial_that_is_asked_for_twice_is_planned_once(trials, content, count):
    found = trials(content)
    assert len(found) == len(set(ids(found))) == count


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc",
        "a/b",
        "a\\b",
        "..",
        ".",
        ".hidden",
        "-x",
        "",
        " ",
        "a b",
        "<b>x</b>",
        "a\nb",
        "a\n",
        "a\0b",
        "ä",
        "x" * 101,
    ],
)
def test_a_name_that_is_more_than_a_word_is_refused(refusal, name):
    quoted = '"' + name.replace("\\", "\\\\").replace("\n", "\\n").replace("\0", "\\0") + '"'
    sentence = refusal(GOOD.replace("study: small", f"study: {quoted}"))
    assert sentence.startswith("my.yaml:1: study must be a name of letters, digits and . _ -, but got ")
    assert len(sentence.splitlines()) == 1
    assert refusal(GOOD, f"study={quoted}").startswith(f"--set study={quoted}: study must be a name")


@pytest.mark.parametrize("name", ["a", "S2_table-9.1", "x" * 100])
def test_a_name_of_letters_digits_dots_dashes_and_underscores_is_taken(study, name):
    assert study(GOOD.replace("study: small", f"study: {name}")).name == name


@pytest.mark.parametrize(
    ("text", "expected"), [("cpus: 2", (2.0, None)), ("cpus: 0.5\ngpus: 0.25", (0.5, 0.25)), ("gpus: 0", (1.0, 0.0))]
)
def test_a_study_says_what_a_trial_occupies(study, text, expected):
    found = study(GOOD + text + "\n")
    assert (found.cpus, found.gpus) == expected


@pytest.mark.parametrize(
    "text", ["cpus: 0", "cpus: -1", "cpus: many", "cpus: [1, 2]", "gpus: -1", "gpus: many", "gpus: .inf", "about: 3"]
)
def test_a_bad_value_beside_the_axes_is_refused_with_its_line(refusal, text):
    key = text.split(":")[0]
    assert refusal(GOOD + text + "\n").startswith(f"my.yaml:7: {key} ")


@pytest.mark.parametrize(
    ("override", "axis", "expected"),
    [
        ("epochs=5", "epochs", [5, 5]),
        ("epochs = 5", "epochs", [5, 5]),
        ("epochs=[5, 6]", "epochs", [5, 6, 5, 6]),
        ("loss={name: gce, q: 1e-1}", "loss", ["gce 0.1", "gce 0.1"]),
        ("loss.scale.tau=2", "loss", ["ce scale 2", "mae scale 2"]),
        ("optimizer.lr=0.9", "optimizer", ["sgd 0.9", "sgd 0.9"]),
        ("optimizer.momentum=0.9", "optimizer", ["sgd 0.1 momentum 0.9", "sgd 0.3 momentum 0.9"]),
        ("seeds=[8]", "seed", [8, 8]),
        ("noise={name: symmetric, rate: 0.4}", "noise", ["symmetric 0.4", "symmetric 0.4"]),
    ],
)
def test_an_override_wins_over_the_file_and_its_cases(study, override, axis, expected):
    found = [value for grid in study(WITH_CASE, override).grids for value in grid[axis]]
    assert [getattr(value, "label", value) for value in found] == expected


def test_an_override_reaches_a_choice_that_stands_in_the_cases_only(trials):
    found = trials(FRAME + "cases:\n  - loss: ce\n  - loss: mae\n", "loss.scale.tau=2")
    assert labels(found, "loss") == [("ce scale 2",), ("mae scale 2",)]


def test_overrides_add_up_and_the_last_one_wins(trials):
    found = trials(GOOD, "epochs=5", "optimizer.lr=0.2", "optimizer.momentum=0.5", "epochs=6")
    assert labels(found, "epochs", "optimizer") == [(6, "sgd 0.2 momentum 0.5")]


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("epochs=abc", "epochs must be a whole number >= 1, but got 'abc'"),
        ("epochs=", "epochs must be a whole number >= 1, but got nothing"),
        ("epochs", "takes key=value, such as epochs=5 or optimizer.lr=0.1"),
        ("epoch=5", "a study has no key 'epoch'. Did you mean 'epochs'?"),
        ("=5", "a study has no key ''."),
        ("optimizer.lrr=1", "optimizer sgd has no parameter 'lrr'. Did you mean 'lr'?"),
        ("optimizer.lr=[0.1, 0.2]", "optimizer sgd takes lr > 0, but got a list where one value is needed"),
        ("optimizer.name=sgdd", "no optimizer is called 'sgdd'. Did you mean 'sgd'?"),
        ("loss=gce", "loss gce needs q in (0, 1]"),
        ("loss.scale.tau=-2", "loss ce scale takes tau > 0, but got -2"),
        ("epochs.x=1", "sets a parameter of one choice, but the study has 2"),
        ("epochs=[", "is not valid YAML"),
        ("epochs={a: 1, a: 2}", "'a' is given twice"),
        ("loss=&a [*a]", "is nested too deeply"),
        ("loss=!mine ce", "'ce' cannot be read"),
    ],
)
def test_a_bad_override_is_refused_by_its_own_text(refusal, override, sentence):
    assert refusal(GOOD, override).startswith(f"--set {override}: {sentence}")


def test_overriding_the_cases_is_refused_without_suggesting_it(refusal):
    assert "Did you mean 'cases'" not in refusal(GOOD, "cases=[]")


def test_an_override_of_a_study_with_bad_cases_complains_of_the_cases(refusal):
    assert refusal(GOOD + "cases: 5\n", "epochs=3").startswith("my.yaml:7: cases takes a list of mappings")


@pytest.mark.parametrize("name", catalog.names())
def test_every_study_of_the_catalog_is_called_as_its_file_and_has_trials(name):
    assert load(name).name == name
    assert plan(load(name))


def test_a_study_that_does_not_exist_is_refused_with_the_nearest_name():
    with pytest.raises(BadStudy, match=r"no study is called 'dem'\. Did you mean 'demo'\? Known: "):
        load("dem")
