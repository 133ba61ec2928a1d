"""The JSON schema of a study file accepts and refuses what the loader does."""

import json

import jsonschema
import pytest

from study import catalog
from study.definition import KEYS, load
from study.document import BadStudy, read_document
from study.planning import plan
from study.schema import schema
from tests.study.good_study import FRAME, GOOD
from trainables.trial import MENUS

OF_THE_DESIGN = """\
study: who-underfits
about: Robust losses on ten and on a hundred classes
dataset: [digits, digit_pairs]
model: small_cnn
noise: [none, {name: symmetric, rate: 0.4}]
loss:
  - ce
  - mae
  - {name: mae, scale: {tau: 2.6}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1e-4}
schedule: cosine
epochs: 30
batch_size: 128
seeds: 3
"""
LOSSES = {
    "ce": True,
    "[ce, mae]": True,
    "{name: ce}": True,
    "{name: mae, factor: 2}": True,
    "{name: gce, q: 1}": True,
    "{name: imae, T: 8}": True,
    "{name: mae, scale: {tau: 2}}": True,
    "{name: mae, shift: {tau: 2, expected_margin: eq4}}": True,
    "{name: mae, scale: {tau: 2, expected_margin: 3}}": True,
    "cee": False,
    "3": False,
    "": False,
    "[]": False,
    "[[ce]]": False,
    "{q: 1}": False,
    "{name: [ce]}": False,
    "gce": False,
    "{name: gce}": False,
    "{name: gce, q: 0}": False,
    "{name: gce, q: 1.5}": False,
    "{name: gce, q: [0.1, 0.5]}": False,
    "{name: gce, q: '0.5'}": False,
    "{name: mae, factor: 3}": False,
    "{name: mae, qq: 3}": False,
    "{name: mae, scale: 2}": False,
    "{name: mae, scale: {}}": False,
    "{name: mae, scale: {tau: 0}}": False,
    "{name: mae, scale: {tau: 2, expected_margin: other}}": False,
    "{name: mae, scale: {tau: 2}, shift: {tau: 2}}": False,
}
LINES = {
    "noise: {name: symmetric, rate: 0.4}": True,
    "noise: [none, {name: symmetric, rate: 1}]": True,
    "schedule: cosine": True,
    "seeds: 3": True,
    "seeds: [1, 4]": True,
    "unit_max: [true, false]": True,
    "valid_share: 0": True,
    "cpus: 0.5": True,
    "gpus: 0.25": True,
    "about: words": True,
    "cases: []": True,
    "cases: [{loss: mae, seeds: 2}, {}]": True,
    "noise: symmetric": False,
    "noise: {name: symmetric, rate: 1.5}": False,
    "noise: {name: none, rate: 0.1}": False,
    "noise: []": False,
    "seeds: 0": False,
    "seeds: [-1]": False,
    "seeds: []": False,
    "seeds: 2000000": False,
    "seeds: true": False,
    "unit_max: yes": False,
    "valid_share: 1": False,
    "batch_size: 0": False,
    "evaluate_every: 2.5": False,
    "cpus: 0": False,
    "gpus: -1": False,
    "about: 3": False,
    "epoch: 3": False,
    "cases: 3": False,
    "cases: [3]": False,
    "cases: [{study: other}]": False,
    "cases: [{loss: cee}]": False,
}
STUDIES = {
    "the example of the design": (OF_THE_DESIGN, True),
    "a frame with a case": (FRAME + "cases: [{loss: ce}]\n", True),
    "a frame alone": (FRAME, False),
    "a frame without a case": (FRAME + "cases: []\n", False),
    "no name": (GOOD.replace("study: small\n", ""), False),
    "a name that leads elsewhere": (GOOD.replace("study: small", "study: ../x"), False),
    "a number for a name": (GOOD.replace("study: small", "study: 3"), False),
    "two names": (GOOD.replace("study: small", "study: [a, b]"), False),
    **{f"loss: {loss}": (GOOD.replace("loss: ce", f"loss: {loss}"), good) for loss, good in LOSSES.items()},
    **{line: (f"{GOOD}{line}\n", good) for line, good in LINES.items()},
}
VALIDATOR = jsonschema.Draft202012Validator(schema())


def test_the_schema_is_one_and_can_be_printed():
    jsonschema.Draft202012Validator.check_schema(schema())
    assert json.loads(json.dumps(schema(), allow_nan=False)) == schema()


def test_the_schema_knows_every_key_and_every_entry_of_every_menu():
    assert tuple(schema()["properties"]) == KEYS
    for axis, menu in MENUS.items():
        text = json.dumps(schema()["properties"][axis])
        assert [name for name in menu.entries if f'{{"const": "{name}"}}' not in text] == []


@pytest.mark.parametrize("name", catalog.names())
def test_the_schema_accepts_every_study_of_the_catalog(name):
    VALIDATOR.validate(read_document(catalog.find(name)).data)


@pytest.mark.parametrize(("content", "good"), STUDIES.values(), ids=STUDIES)
def test_the_schema_and_the_loader_agree(tmp_path, content, good):
    path = tmp_path / "my.yaml"
    path.write_text(content)
    assert VALIDATOR.is_valid(read_document(path).data) == good
    assert loads(path) == good


def loads(path):
    try:
        return bool(plan(load(path)))
    except BadStudy:
        return False
