import hashlib
import json
import random

import pytest

from trainables.choices import BadChoice
from trainables.trial import AXES, Trial, check

OTHER = {
    "batch_size": 64,
    "dataset": "digit_pairs",
    "epochs": 4,
    "evaluate_every": 2,
    "loss": "mae",
    "model": {"name": "small_cnn", "width": 5, "hidden": 32},
    "noise": {"name": "symmetric", "rate": 0.41},
    "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
    "schedule": "constant",
    "seed": 1,
    "unit_max": True,
    "valid_share": 0.2,
}
PINNED = (
    '{"batch_size":128,"dataset":{"name":"digits"},"epochs":3,"evaluate_every":1,"loss":{"factor":1,"name":"mae",'
    '"scale":{"expected_margin":"paper_k","tau":2.6}},"model":{"hidden":32,"name":"small_cnn","width":4},'
    '"noise":{"name":"symmetric","rate":0.4},"optimizer":{"lr":0.05,"momentum":0.9,"name":"sgd","nesterov":false,'
    '"weight_decay":0.0001},"schedule":{"name":"cosine"},"seed":0,"unit_max":false,"valid_share":0.1}'
)


def shuffled(value, seed):
    """The same mapping with its keys, and those of the mappings in it, in another order."""
    if not isinstance(value, dict):
        return value
    items = [(key, shuffled(inner, seed)) for key, inner in value.items()]
    random.Random(seed).shuffle(items)
    return dict(items)


def test_every_axis_is_tested():
    assert set(OTHER) == set(AXES), "give the new axis another value in OTHER"


def test_the_id_of_a_known_trial_has_not_changed(config):
    trial = Trial.from_config(config | {"loss": {"name": "mae", "scale": {"tau": 2.6}}})
    assert trial.canonical() == PINNED
    assert trial.id == "af937a7927e2781e"
    assert trial.cell == "cfcc44f86faa2028"
    assert trial.label == "mae scale 2.6 | symmetric 0.4 | digits | seed 0"


def test_the_id_is_a_digest_of_the_config_as_sorted_json(config):
    trial = Trial.from_config(config)
    text = json.dumps(trial.config, sort_keys=True, separators=(",", ":"))
    assert trial.canonical() == text
    assert trial.id == hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("seed", range(5))
def test_the_id_does_not_depend_on_key_order(config, seed):
    config = config | {"loss": {"name": "mae", "scale": {"tau": 2.6, "expected_margin": "eq4"}}}
    trial, other = Trial.from_config(config), Trial.from_config(shuffled(config, seed))
    assert trial == other
    assert (trial.id, trial.cell) == (other.id, other.cell)


@pytest.mark.parametrize(
    ("axis", "one", "other"),
    [
        ("loss", "mae", {"name": "mae", "factor": 1}),
        ("loss", {"name": "imae", "T": 8}, {"name": "imae", "T": 8.0}),
        ("noise", {"name": "symmetric", "rate": 1}, {"name": "symmetric", "rate": 1.0}),
        ("valid_share", 0, 0.0),
        (
            "optimizer",
            {"name": "sgd", "lr": 1},
            {"name": "sgd", "lr": 1.0, "momentum": 0, "weight_decay": 0, "nesterov": False},
        ),
        ("schedule", "cosine", {"name": "cosine"}),
        ("model", "small_cnn", {"name": "small_cnn", "width": 16, "hidden": 256}),
    ],
)
def test_the_id_does_not_depend_on_spelling(config, axis, one, other):
    assert Trial.from_config(config | {axis: one}).id == Trial.from_config(config | {axis: other}).id
    assert Trial.from_config(config | {axis: one}) == Trial.from_config(config | {axis: other})


@pytest.mark.parametrize("axis", AXES)
def test_the_id_differs_with_every_axis_and_the_cell_with_all_but_the_seed(config, axis):
    trial, other = Trial.from_config(config), Trial.from_config(config | {axis: OTHER[axis]})
    assert trial != other
    assert trial.id != other.id
    assert (trial.cell == other.cell) == (axis == "seed")
    assert trial.cell != trial.id


@pytest.mark.parametrize("axis", AXES)
def test_a_trial_comes_back_from_its_config(config, axis):
    trial = Trial.from_config(config | {axis: OTHER[axis]})
    through_json = json.loads(json.dumps(trial.config))
    again = Trial.from_config(through_json)
    assert again == trial
    assert hash(again) == hash(trial)
    assert (again.id, again.cell, again.label, again.config) == (trial.id, trial.cell, trial.label, trial.config)


def test_a_trial_is_frozen(config):
    trial = Trial.from_config(config)
    with pytest.raises(AttributeError):
        trial.seed = 1


@pytest.mark.parametrize(
    ("axis", "value", "sentence"),
    [
        ("epochs", 0, "epochs must be a whole number >= 1, but got 0"),
        ("epochs", 1.5, "epochs must be a whole number >= 1, but got 1.5"),
        ("epochs", True, "epochs must be a whole number >= 1, but got True"),
        ("seed", -1, "seed must be a whole number >= 0, but got -1"),
        ("batch_size", "big", "batch_size must be a whole number >= 1, but got 'big'"),
        ("valid_share", 1, "valid_share must be in [0, 1), but got 1"),
        ("valid_share", float("nan"), "valid_share must be in [0, 1), but got nan"),
        ("unit_max", 1, "unit_max must be true or false, but got 1"),
        ("epochs", [1, 2], "epochs must be a whole number >= 1, but got a list where one value is needed"),
        ("loss", "maee", "no loss is called 'maee'. Did you mean 'mae'? Known: "),
    ],
)
def test_a_bad_value_of_an_axis_is_refused_in_a_sentence(axis, value, sentence):
    with pytest.raises(BadChoice) as refusal:
        check(axis, value)
    assert sentence in str(refusal.value)


def test_an_unknown_axis_is_refused_with_the_nearest_one(config):
    with pytest.raises(BadChoice, match=r"no axis 'epoch'\. Did you mean 'epochs'\?"):
        Trial.from_config(config | {"epoch": 3})
