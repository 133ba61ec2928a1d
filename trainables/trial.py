"""A trial: one training, complete and frozen, with an id that is the digest of its canonical config."""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from annotated_types import Ge, Lt
from pydantic import BaseModel, ValidationError

from trainables.choices import STRICT, BadChoice, Choice, Menu, canonical_json, field_rule, plain, shown, unknown
from trainables.datasets import DATASETS
from trainables.losses import LOSSES
from trainables.models import MODELS
from trainables.noise import NOISES
from trainables.optimizers import OPTIMIZERS, SCHEDULES


@dataclass(frozen=True)
class Trial:
    batch_size: int
    dataset: Choice
    epochs: int
    evaluate_every: int
    loss: Choice
    model: Choice
    noise: Choice
    optimizer: Choice
    schedule: Choice
    seed: int
    unit_max: bool
    valid_share: float

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Trial":
        return cls(**{axis: check(axis, value) for axis, value in config.items()})

    @property
    def config(self) -> dict[str, Any]:
        return json.loads(self.canonical())

    def canonical(self, without: str = "") -> str:
        """The config as JSON with sorted keys, composed from the choices' own; 100,000 ids take a second."""
        return "{" + ",".join(f'"{axis}":{_json(getattr(self, axis))}' for axis in AXES if axis != without) + "}"

    @property
    def id(self) -> str:
        return _digest(self.canonical())

    @property
    def cell(self) -> str:
        """The id shared by the trials that differ in the seed only."""
        return _digest(self.canonical(without="seed"))

    @property
    def label(self) -> str:
        return f"{self.loss.label} | {self.noise.label} | {self.dataset.label} | seed {self.seed}"


AXES = tuple(sorted(axis.name for axis in fields(Trial)))

MENUS: dict[str, Menu] = {
    "dataset": DATASETS,
    "model": MODELS,
    "noise": NOISES,
    "loss": LOSSES,
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}


class Settings(BaseModel):
    """The axes that are plain values rather than choices from a menu."""

    model_config = STRICT
    epochs: Annotated[int, Ge(1)]
    batch_size: Annotated[int, Ge(1)] = 128
    valid_share: Annotated[float, Ge(0), Lt(1)] = 0.1
    evaluate_every: Annotated[int, Ge(1)] = 1
    unit_max: bool = False
    seed: Annotated[int, Ge(0)] = 0


DEFAULTS: dict[str, Any] = {
    "noise": "none",
    "schedule": "constant",
    **{axis: info.default for axis, info in Settings.model_fields.items() if not info.is_required()},
}


def check(axis: str, value: Any) -> Any:
    """One value of one axis, typed and canonical, or BadChoice."""
    if axis in MENUS:
        return MENUS[axis].choose(value)
    if axis not in AXES:
        raise BadChoice(unknown("a trial has no axis", axis, AXES))
    try:
        return plain(getattr(Settings.model_validate({"epochs": 1, axis: value}), axis))
    except ValidationError:
        raise BadChoice(f"{axis} must be {field_rule(Settings.model_fields[axis])}, but got {shown(value)}") from None


def _json(value: Any) -> str:
    return value.canonical if isinstance(value, Choice) else _plain_json(value)


# Typed: 1, 1.0 and True are equal, but not the same JSON.
_plain_json = functools.lru_cache(maxsize=100_000, typed=True)(canonical_json)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
