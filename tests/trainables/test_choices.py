import itertools
import json
import math

import pytest

from trainables.choices import BadChoice
from trainables.datasets import DATASETS
from trainables.losses import LOSSES, build_loss
from trainables.models import MODELS
from trainables.noise import NOISES
from trainables.optimizers import OPTIMIZERS, SCHEDULES
from trainables.trial import MENUS

REQUIRED = {"gce": {"q": 0.7}, "imae": {"T": 8}, "symmetric": {"rate": 0.4}, "sgd": {"lr": 0.05}}
ENTRIES = [(menu, name) for menu in MENUS.values() for name in menu.entries]
ALL_LOSSES, ALL_NOISES = ", ".join(LOSSES.entries), ", ".join(NOISES.entries)
EVERY_ENTRY = pytest.mark.parametrize(("menu", "name"), ENTRIES, ids=[f"{menu.kind} {name}" for menu, name in ENTRIES])


def example(menu, name):
    needed = [key for key, info in menu.parameters(name).model_fields.items() if info.is_required()]
    assert not needed or name in REQUIRED, f"{menu.kind} {name} needs {needed}: give an example in REQUIRED of {__file__}"
    return {"name": name, **REQUIRED.get(name, {})}


@EVERY_ENTRY
def test_a_choice_comes_back_from_its_own_config(menu, name):
    choice = menu.choose(example(menu, name))
    again = menu.choose(choice.config)
    assert again == choice
    assert hash(again) == hash(choice)
    assert (again.canonical, again.label) == (choice.canonical, choice.label)
    assert menu.choose(choice) is choice


@EVERY_ENTRY
def test_every_entry_says_what_it_is(menu, name):
    assert menu.entries[name].__doc__, f"{menu.kind} {name} has no docstring"


@EVERY_ENTRY
def test_spelling_out_a_default_changes_nothing(menu, name):
    given = example(menu, name)
    fields = menu.parameters(name).model_fields
    defaults = {key: info.default for key, info in fields.items() if not info.is_required() and info.default is not None}
    assert menu.choose(given | defaults) == menu.choose(given)
    assert menu.choose(given | defaults).canonical == menu.choose(given).canonical


@EVERY_ENTRY
def test_an_unknown_parameter_is_refused_with_its_path(menu, name):
    with pytest.raises(BadChoice, match=f"^{menu.kind} {name} has no parameter 'sandwich'. Known: ") as refusal:
        menu.choose(example(menu, name) | {"sandwich": 1})
    assert refusal.value.path == ("sandwich",)


def test_canonical_text_is_compact_json_with_sorted_keys_and_every_default():
    text = OPTIMIZERS.choose({"name": "sgd", "lr": 1}).canonical
    assert text == '{"lr":1.0,"momentum":0.0,"name":"sgd","nesterov":false,"weight_decay":0.0}'
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    "spellings",
    [
        [dict(order) for order in itertools.permutations([("name", "mae"), ("factor", 1), ("scale", {"tau": 2.6})])],
        ["mae", {"name": "mae"}, {"name": "mae", "factor": 1}, {"name": "mae", "factor": 1}, {"factor": 1, "name": "mae"}],
        [{"name": "imae", "T": 8}, {"name": "imae", "T": 8.0}, {"T": 8, "name": "imae"}],
        [{"name": "gce", "q": 1}, {"name": "gce", "q": 1.0}, {"name": "gce", "q": 10e-1}],
        [{"name": "ce", "scale": dict(order)} for order in itertools.permutations([("tau", 3), ("expected_margin", "paper_k")])]
        + [{"name": "ce", "scale": {"tau": 3.0}}],
        [
            {"name": "ce", "shift": {"tau": 1, "expected_margin": 3}},
            {"name": "ce", "shift": {"expected_margin": 3.0, "tau": 1.0}},
        ],
    ],
    ids=["key order", "default", "whole number", "one", "inner keys", "own margin"],
)
def test_two_spellings_are_one_choice(spellings):
    choices = [LOSSES.choose(spelling) for spelling in spellings]
    assert len(set(choices)) == 1
    assert len({choice.canonical for choice in choices}) == 1
    assert len({choice.label for choice in choices}) == 1


def test_minus_zero_is_zero():
    assert LOSSES.choose({"name": "imae", "T": -0.0}) == LOSSES.choose({"name": "imae", "T": 0.0})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ce", "mae"),
        ("mae", {"name": "mae", "factor": 2}),
        ({"name": "gce", "q": 0.7}, {"name": "gce", "q": 0.7000001}),
        ({"name": "mae", "scale": {"tau": 2}}, {"name": "mae", "shift": {"tau": 2}}),
        ({"name": "mae", "scale": {"tau": 2}}, {"name": "mae", "scale": {"tau": 2, "expected_margin": "eq4"}}),
    ],
)
def test_two_choices_are_not_one(one, other):
    assert LOSSES.choose(one) != LOSSES.choose(other)
    assert LOSSES.choose(one).canonical != LOSSES.choose(other).canonical


@pytest.mark.parametrize(
    ("menu", "given", "label"),
    [
        (LOSSES, "ce", "ce"),
        (LOSSES, {"name": "mae", "scale": {"tau": 2.6}}, "mae scale 2.6"),
        (LOSSES, {"name": "mae", "shift": {"tau": 3, "expected_margin": "eq4"}}, "mae shift 3 expected_margin eq4"),
        (LOSSES, {"name": "mae", "factor": 2}, "mae factor 2"),
        (LOSSES, {"name": "mae", "factor": 1}, "mae"),
        (LOSSES, {"name": "gce", "q": 0.7}, "gce 0.7"),
        (LOSSES, {"name": "gce", "q": 0.7, "scale": {"tau": 1.5}}, "gce 0.7 scale 1.5"),
        (LOSSES, {"name": "imae", "T": 8}, "imae 8"),
        (NOISES, {"name": "symmetric", "rate": 0.4}, "symmetric 0.4"),
        (NOISES, "none", "none"),
        (DATASETS, "digits", "digits"),
        (MODELS, {"name": "small_cnn", "width": 4}, "small_cnn width 4"),
        (SCHEDULES, "cosine", "cosine"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_label_names_what_differs_from_the_defaults(menu, given, label):
    assert menu.choose(given).label == label


@pytest.mark.parametrize(
    ("menu", "given", "sentence", "path"),
    [
        (
            LOSSES,
            {"name": "gce", "qq": 0.7},
            "loss gce has no parameter 'qq'. Did you mean 'q'? Known: q, scale, shift",
            ("qq",),
        ),
        (LOSSES, {"name": "gce"}, "loss gce needs q in (0, 1]", ()),
        (LOSSES, {"name": "gce", "q": "high"}, "loss gce takes q in (0, 1], but got 'high'", ("q",)),
        (LOSSES, {"name": "gce", "q": "0.7"}, "loss gce takes q in (0, 1], but got '0.7'", ("q",)),
        (LOSSES, {"name": "gce", "q": None}, "loss gce takes q in (0, 1], but got nothing", ("q",)),
        (LOSSES, {"name": "gce", "q": True}, "loss gce takes q in (0, 1], but got True", ("q",)),
        (LOSSES, {"name": "gce", "q": math.nan}, "loss gce takes q in (0, 1], but got nan", ("q",)),
        (LOSSES, {"name": "imae", "T": math.inf}, "loss imae takes T in [0, 64], but got inf", ("T",)),
        (LOSSES, {"name": "imae", "T": -math.inf}, "loss imae takes T in [0, 64], but got -inf", ("T",)),
        (
            LOSSES,
            {"name": "gce", "q": [0.1, 0.7]},
            "loss gce takes q in (0, 1], but got a list where one value is needed",
            ("q",),
        ),
        (LOSSES, {"name": "gce", "q": {"a": 1}}, "loss gce takes q in (0, 1], but got a mapping", ("q",)),
        (LOSSES, {"name": "mae", "scale": {}}, "loss mae scale needs tau > 0", ("scale",)),
        (LOSSES, {"name": "mae", "scale": {"tau": -1}}, "loss mae scale takes tau > 0, but got -1", ("scale", "tau")),
        (LOSSES, {"name": "mae", "scale": {"tau": True}}, "loss mae scale takes tau > 0, but got True", ("scale", "tau")),
        (LOSSES, {"name": "mae", "scale": {"tau": math.nan}}, "loss mae scale takes tau > 0, but got nan", ("scale", "tau")),
        (
            LOSSES,
            {"name": "mae", "shift": {"tua": 1}},
            "loss mae shift has no parameter 'tua'. Did you mean 'tau'? Known: tau, expected_margin",
            ("shift", "tua"),
        ),
        (
            LOSSES,
            {"name": "mae", "scale": {"tau": 1, "expected_margin": "eq5"}},
            "loss mae scale takes expected_margin paper_k, eq4 or > 0, but got 'eq5'",
            ("scale", "expected_margin"),
        ),
        (
            LOSSES,
            {"name": "mae", "scale": 3},
            "loss mae takes scale as a mapping with tau, expected_margin, but got 3",
            ("scale",),
        ),
        (
            LOSSES,
            {"name": "mae", "scale": {"tau": 1}, "shift": {"tau": 1}},
            "loss mae takes scale or shift, not both",
            ("shift",),
        ),
        (LOSSES, {"name": "gec", "q": 1}, f"no loss is called 'gec'. Did you mean 'gce'? Known: {ALL_LOSSES}", ("name",)),
        (LOSSES, 5, "loss takes a name or a mapping with `name`, but got 5", ()),
        (LOSSES, ["ce"], "loss takes a name or a mapping with `name`, but got a list where one value is needed", ()),
        (LOSSES, {"q": 0.7}, f"loss needs a `name`: one of {ALL_LOSSES}", ()),
        (NOISES, "symetric", f"no noise is called 'symetric'. Did you mean 'symmetric'? Known: {ALL_NOISES}", ()),
        (NOISES, {"name": "symmetric", "rate": 1.1}, "noise symmetric takes rate in [0, 1], but got 1.1", ("rate",)),
        (
            MODELS,
            {"name": "small_cnn", "width": 4.0},
            "model small_cnn takes width a whole number >= 1, but got 4.0",
            ("width",),
        ),
        (
            MODELS,
            {"name": "small_cnn", "width": True},
            "model small_cnn takes width a whole number >= 1, but got True",
            ("width",),
        ),
        (
            DATASETS,
            {"name": "digit_pairs", "train": 9},
            "dataset digit_pairs takes train a whole number >= 100, but got 9",
            ("train",),
        ),
        (
            OPTIMIZERS,
            {"name": "sgd", "lr": 1, "momentum": 1},
            "optimizer sgd takes momentum in [0, 1), but got 1",
            ("momentum",),
        ),
        (
            OPTIMIZERS,
            {"name": "sgd", "lr": 1, "nesterov": 1},
            "optimizer sgd takes nesterov true or false, but got 1",
            ("nesterov",),
        ),
    ],
)
def test_a_bad_choice_is_refused_in_one_sentence_with_the_path_to_it(menu, given, sentence, path):
    with pytest.raises(BadChoice) as refusal:
        menu.choose(given)
    assert str(refusal.value) == sentence
    assert refusal.value.path == path


def test_a_parameter_named_by_a_number_is_refused_in_a_sentence():
    with pytest.raises(BadChoice):
        LOSSES.choose({"name": "gce", "q": 0.7, 3: 1})


def test_true_is_no_factor_of_mae():
    with pytest.raises(BadChoice):
        LOSSES.choose({"name": "mae", "factor": True})


def test_a_temperature_beyond_all_floats_is_refused_in_a_sentence():
    with pytest.raises(BadChoice):
        build_loss({"name": "imae", "T": 3000}, 10)
