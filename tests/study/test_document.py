"""Reading a study file: YAML 1.2, and for every mistake one sentence with the file and the line."""

import pytest

from study.definition import load
from study.document import BadStudy, read_document, read_value
from tests.study.good_study import GOOD

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture
def written(tmp_path):
    """A study file with that content."""

    def write(content, name="bad.yaml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def refusal(written):
    """The sentence that refuses a study file with that content."""

    def refuse(content):
        with pytest.raises(BadStudy) as error:
            load(written(content))
        sentence = str(error.value)
        assert len(sentence.splitlines()) == 1
        return sentence

    return refuse


def with_loss(text):
    return GOOD.replace("loss: ce", f"loss: {text}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E3", 1000.0),
        ("+.5", 0.5),
        ("0o17", 15),
        ("017", 17),
        ("0x1F", 31),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("true", True),
        ("False", False),
        ("1:30", "1:30"),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ("[1, 1.0, one]", [1, 1.0, "one"]),
        ("{a: {b: [c]}}", {"a": {"b": ["c"]}}),
    ],
)
def test_values_are_read_as_yaml_1_2(written, text, value):
    found = read_document(written(f"key: {text}\n")).data["key"]
    assert (found, type(found)) == (value, type(value))
    assert read_value(text) == value


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"# a comment\n", b"---\n", b"%YAML 1.2\n---\n"])
def test_what_may_stand_before_a_study_changes_nothing(written, mark):
    assert load(written(mark + GOOD.encode())) == load(written(GOOD))


def test_an_alias_stands_for_the_value_of_its_anchor(written):
    document = read_document(written("noise: &n {name: symmetric, rate: 0.4}\ncases:\n  - noise: *n\n"))
    assert document.data["cases"] == [{"noise": {"name": "symmetric", "rate": 0.4}}]


def test_an_anchor_may_be_used_again_without_a_warning(written, recwarn):
    load(written(GOOD + "noise: &a none\nschedule: &a cosine\n"))
    assert [str(warning.message) for warning in recwarn] == []


def test_windows_line_ends_are_counted_once(refusal):
    assert refusal((GOOD + "noise: nope\n").replace("\n", "\r\n")).startswith("bad.yaml:7: no noise is called 'nope'")


NOT_A_STUDY = {
    "": "bad.yaml:1: is empty",
    "\n\n": "bad.yaml:1: is empty",
    "# only\n# comments\n": "bad.yaml:1: is empty",
    "- study: a\n- study: b\n": "bad.yaml:1: a study file is a mapping",
    "# one\njust a text\n": "bad.yaml:2: a study file is a mapping",
    "~\n": "bad.yaml:1: a study file is a mapping",
    bytes(range(256)): "bad.yaml:1: is not a text file in UTF-8",
    b"\x89PNG\r\n\x1a\n\x00\x00": "bad.yaml:1: is not a text file in UTF-8",
    GOOD.encode("utf-16"): "bad.yaml:1: is not a text file in UTF-8",
    GOOD.encode("utf-16-le"): "bad.yaml:1: is not ",
}


@pytest.mark.parametrize(("content", "sentence"), NOT_A_STUDY.items(), ids=NOT_A_STUDY.values())
def test_what_is_no_study_at_all_is_refused(refusal, content, sentence):
    assert refusal(content).startswith(sentence)


BROKEN_YAML = {
    GOOD + "noise:\n\tname: none\n": (8, "is not valid YAML: found character '\\t'"),
    GOOD + "noise: {name: none\nseeds: 3\n": (8, "is not valid YAML"),
    GOOD + "noise: [none, \n": (7, "is not valid YAML"),
    GOOD + "noise: 'none\n": (7, "is not valid YAML"),
    GOOD + "  noise: none\n": (7, "is not valid YAML"),
    GOOD + "noise: *nope\n": (7, "is not valid YAML: found undefined alias 'nope'"),
    GOOD + "---\n" + GOOD: (7, "is not valid YAML"),
    GOOD.replace("ce", "c\0e"): (4, "is not a text file"),
    GOOD.replace("ce", "c\x07e"): (4, "is not a text file"),
    GOOD + "? [a, b]\n: 3\n": (7, "a key must be a plain word"),
    GOOD + "epochs: 3\n": (7, "'epochs' is given twice"),
    GOOD + '"epochs": 3\n': (7, "'epochs' is given twice"),
    GOOD + "noise:\n  name: symmetric\n  rate: 0.1\n  rate: 0.2\n": (10, "'rate' is given twice"),
}


@pytest.mark.parametrize(("content", "found"), BROKEN_YAML.items(), ids=lambda value: ascii(value)[-40:])
def test_broken_yaml_is_refused_with_its_line(refusal, content, found):
    line, words = found
    sentence = refusal(content)
    assert words in sentence
    assert sentence.startswith(f"bad.yaml:{line}: ")


EXPLOSIVE = {
    BOMB: 1,
    GOOD + "about:\n" + "".join(f"  {line}\n" for line in BOMB.splitlines()): 8,
    with_loss("&a [*a]"): 4,
    with_loss("&a {name: *a}"): 4,
    with_loss("&a\n  - ce\n  - [mae, *a]"): 6,
    with_loss("[" * 40 + "]" * 40): 4,
    with_loss("{a: " * 40 + "1" + "}" * 40): 4,
}


@pytest.mark.parametrize(("content", "line"), EXPLOSIVE.items(), ids=range(len(EXPLOSIVE)))
def test_what_expands_without_end_is_refused(refusal, content, line):
    sentence = refusal(content)
    assert "is nested too deeply, or expands to too many values" in sentence
    assert sentence.startswith(f"bad.yaml:{line}: ")


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_nesting_beyond_pythons_stack_is_refused_in_words_of_its_own(refusal, depth):
    sentence = refusal(with_loss("[" * depth + "]" * depth))
    assert sentence.startswith("bad.yaml:")
    assert "nested too deeply" in sentence


@pytest.mark.parametrize(
    "tagged",
    [
        "!!python/object:os.system ls",
        "!!python/object/apply:os.system [ls]",
        "!!python/object/new:os.system {name: ce}",
        "!mine ce",
        "!mine [ce, mae]",
        "!mine {name: ce}",
    ],
)
def test_an_unknown_tag_is_refused(refusal, tagged):
    sentence = refusal(with_loss(tagged))
    assert sentence.startswith("bad.yaml:4: ")
    assert tagged.split()[0].strip("!") in sentence


@pytest.mark.parametrize("tagged", ["!!int two", "!!float two", "!!bool two", "!!timestamp two", "2020-13-41"])
def test_a_value_that_does_not_fit_its_tag_is_refused(refusal, tagged):
    sentence = refusal(GOOD.replace("epochs: 2", f"epochs: {tagged}"))
    assert sentence.startswith(f"bad.yaml:6: {tagged.split()[-1]!r} cannot be read: ")


def test_a_merge_key_is_obeyed_or_refused_by_its_name(written):
    merging = written(GOOD + "noise: &n {name: symmetric, rate: 0.1}\ncases:\n  - noise:\n      <<: *n\n      rate: 0.2\n")
    try:
        outcome = load(merging).grids[1]["noise"][0].canonical
    except BadStudy as error:
        outcome = str(error)
    assert outcome == '{"name":"symmetric","rate":0.2}' or (outcome.startswith("bad.yaml:10: ") and "<<" in outcome)


LINES = {
    with_loss("cee"): "bad.yaml:4: no loss is called 'cee'. Did you mean 'ce'? Known: ce, mae, ",
    with_loss("\n  - ce\n  - mae\n  - gcee"): "bad.yaml:7: no loss is called 'gcee'. Did you mean 'gce'?",
    with_loss("\n  - ce\n  - mae\n  - name: gce\n    q: 1.5"): "bad.yaml:8: loss gce takes q in (0, 1], but got 1.5",
    with_loss("\n  - ce\n  - mae\n  - name: gcee\n    q: 0.5"): "bad.yaml:7: no loss is called 'gcee'",
    with_loss("\n  - ce\n  - mae\n  - name: gce\n"): "bad.yaml:7: loss gce needs q in (0, 1]",
    with_loss("\n  name: mae\n  scale:\n    tau: -1"): "bad.yaml:7: loss mae scale takes tau > 0, but got -1",
    with_loss("\n  name: mae\n  scale:\n    tua: 1"): "bad.yaml:7: loss mae scale has no parameter 'tua'. Did you mean 'tau'?",
    with_loss("\n  name: mae\n  scale:\n    expected_margin: 3"): "bad.yaml:6: loss mae scale needs tau > 0",
    with_loss("\n  name: mae\n  scale: {tau: 1}\n  shift: {tau: 1}"): "bad.yaml:7: loss mae takes scale or shift, not both",
    with_loss("{name: gce, q: [0.1, 0.5]}"): "bad.yaml:4: loss gce takes q in (0, 1], but got a list where one value is needed",
    with_loss(
        "[[ce, mae]]"
    ): "bad.yaml:4: loss takes a name or a mapping with `name`, but got a list where one value is needed",
    with_loss(""): "bad.yaml:4: loss takes a name or a mapping with `name`, but got nothing",
    with_loss("[]"): "bad.yaml:4: loss is an empty list",
    GOOD.replace(
        "study: small", "study: [a, b]"
    ): "bad.yaml:1: study must be a name of letters, digits and . _ -, but got a list where one value",
    GOOD.replace("epochs: 2", "epochs: two"): "bad.yaml:6: epochs must be a whole number >= 1, but got 'two'",
    GOOD.replace("epochs: 2", "epochs: '2'"): "bad.yaml:6: epochs must be a whole number >= 1, but got '2'",
    GOOD.replace("epochs: 2", "epochs: [2, 0]"): "bad.yaml:6: epochs must be a whole number >= 1, but got 0",
    GOOD.replace("lr: 0.1", "lr: .nan"): "bad.yaml:5: optimizer sgd takes lr > 0, but got nan",
    GOOD + "unit_max: yes\n": "bad.yaml:7: unit_max must be true or false, but got 'yes'",
    GOOD + "noise: {name: symmetric, rate: 1.5}\n": "bad.yaml:7: noise symmetric takes rate in [0, 1], but got 1.5",
    GOOD + "epoch: 3\n": "bad.yaml:7: a study has no key 'epoch'. Did you mean 'epochs'?",
    GOOD
    + "cases:\n  - seeds: 2\n  - noise:\n      name: symmetric\n      rate: 2\n": "bad.yaml:11: noise symmetric takes rate",
    GOOD + "cases:\n  - seeds: 2\n  - nois: none\n": "bad.yaml:9: a case has no axis 'nois'. Did you mean 'noise'?",
}


@pytest.mark.parametrize(("content", "sentence"), LINES.items(), ids=LINES.values())
def test_a_bad_value_is_refused_with_the_line_it_stands_on(refusal, content, sentence):
    assert refusal(content).startswith(sentence)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(BadStudy, match=r"nosuch\.yaml: there is no such file"):
        load(tmp_path / "nosuch.yaml")
    with pytest.raises(BadStudy, match=r"is a folder, not a study file"):
        load(tmp_path)
    with pytest.raises(BadStudy, match=r"cannot be read: "):
        read_document(tmp_path)


def test_a_file_too_large_for_a_study_is_refused_unread(refusal):
    assert refusal(b"#" * 1_000_001).startswith("bad.yaml: has 1,000,001 bytes; a study file has at most 1,000,000")
