"""Named choices: how `{name: gce, q: 0.7}` in a study file becomes a checked, frozen, canonical value.

A menu lists plain functions by name. A function's keyword-only arguments are what a study may set; their annotations hold the
type and the range. Its positional arguments are context (the number of classes, say) that the caller supplies.
"""

import difflib
import functools
import inspect
import json
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import annotated_types
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class BadChoice(ValueError):
    """What was given, what is allowed; `path` leads to the culprit inside the value that was given."""

    def __init__(self, message: str, path: tuple[Any, ...] = ()):
        super().__init__(message)
        self.path = path


@dataclass(frozen=True)
class Choice:
    """One entry of a menu with every parameter, defaults included. Two spellings of one choice are equal."""

    kind: str
    name: str
    canonical: str = field(repr=False)
    label: str = field(compare=False)

    @property
    def config(self) -> dict[str, Any]:
        return json.loads(self.canonical)

    @property
    def parameters(self) -> dict[str, Any]:
        return {key: value for key, value in self.config.items() if key != "name"}


@dataclass(frozen=True)
class Menu:
    """The known entries of one kind (loss, noise, ...).

    `extras` are parameters that every entry takes; of those in `exclusive`, a choice may have one.
    """

    kind: str
    entries: Mapping[str, Callable[..., Any]]
    extras: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    exclusive: frozenset[str] = frozenset()

    def choose(self, given: Any) -> Choice:
        """Check a bare name or a mapping with `name`, fill in the defaults, and freeze it."""
        if isinstance(given, Choice):
            return given
        name, parameters = self._split(given)
        if name not in self.entries:
            raise BadChoice(unknown(f"no {self.kind} is called", name, self.entries), ("name",) if parameters else ())
        try:
            checked = self.parameters(name).model_validate(parameters)
        except ValidationError as error:
            raise parameter_error(f"{self.kind} {name}", self.parameters(name), parameters, error) from None
        config = {"name": name} | plain(checked.model_dump(exclude_none=True))
        if len(clash := sorted(self.exclusive & config.keys())) > 1:
            raise BadChoice(f"{self.kind} {name} takes {' or '.join(clash)}, not both", (clash[-1],))
        return Choice(self.kind, name, canonical_json(config), " ".join([name, *_label_parts(checked)]))

    def build(self, choice: Choice, *context: Any) -> Any:
        return self.entries[choice.name](*context, **choice.parameters)

    @functools.cache  # noqa: B019 - a menu lives as long as the program
    def parameters(self, name: str) -> type[BaseModel]:
        return _parameter_model(name, self.entries[name], self.extras)

    def _split(self, given: Any) -> tuple[str, dict[str, Any]]:
        if isinstance(given, str):
            return given, {}
        if not isinstance(given, Mapping):
            raise BadChoice(f"{self.kind} takes a name or a mapping with `name`, but got {shown(given)}")
        parameters = dict(given)
        if strange := [key for key in parameters if not isinstance(key, str)]:
            raise BadChoice(f"{self.kind} has a parameter {strange[0]!r}, which is not a word", (strange[0],))
        name = parameters.pop("name", None)
        if not isinstance(name, str):
            raise BadChoice(f"{self.kind} needs a `name`: one of {', '.join(self.entries)}")
        return name, parameters

    def __hash__(self) -> int:
        return id(self)


def canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plain(value: Any) -> Any:
    """Without negative zeros, which are equal to zero but spelt differently."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value + 0.0 if isinstance(value, float) else value


def unknown(complaint: str, name: object, known: Iterable[str]) -> str:
    """«no noise is called 'symetric'. Did you mean 'symmetric'? Known: none, symmetric»"""
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{complaint} {name!r}.{hint} Known: {', '.join(known)}"


def shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list where one value is needed" if value else "an empty list"
    return "nothing" if value is None else repr(value)


def rule(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """The range of a parameter in words: «in (0, 1]», «a whole number >= 1», «paper_k, eq4 or a number»."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        base, *inner = typing.get_args(annotation)
        return rule(base, [*inner, *metadata])
    if origin is Literal:
        return ", ".join(map(str, typing.get_args(annotation)))
    if arguments := typing.get_args(annotation):
        return " or ".join(rule(argument) for argument in arguments if argument is not type(None))
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return f"as a mapping with {', '.join(annotation.model_fields)}"
    if annotation is bool:
        return "true or false"
    kind = {int: "a whole number", float: "a number", str: "a text"}[annotation]
    interval = _interval(metadata)
    return f"{kind} {interval}".strip() if annotation is int or not interval else interval


def _interval(metadata: Iterable[Any]) -> str:
    low: Any = None
    high: Any = None
    opening, closing = "[", "]"
    for bound in metadata:
        match bound:
            case annotated_types.Gt(gt=low):
                opening = "("
            case annotated_types.Ge(ge=low):
                opening = "["
            case annotated_types.Lt(lt=high):
                closing = ")"
            case annotated_types.Le(le=high):
                closing = "]"
    if low is not None and high is not None:
        return f"in {opening}{low:g}, {high:g}{closing}"
    if low is not None:
        return f"{'>' if opening == '(' else '>='} {low:g}"
    return f"{'<' if closing == ')' else '<='} {high:g}" if high is not None else ""


def _parameter_model(name: str, entry: Callable[..., Any], extras: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
    hints = typing.get_type_hints(entry, include_extras=True)
    fields: Any = {
        parameter.name: (hints[parameter.name], ... if parameter.default is parameter.empty else parameter.default)
        for parameter in inspect.signature(entry).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    return create_model(name, __config__=STRICT, __doc__=inspect.getdoc(entry), **(fields | extras))


def parameter_error(owner: str, model: type[BaseModel], given: Mapping[str, Any], error: ValidationError) -> BadChoice:
    # An unknown parameter is usually a misspelt one: say that before saying that the right one is missing.
    first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
    path = _path_in(given, first["loc"], first["type"])
    *outer, key = path
    for step in outer:
        owner, given = f"{owner} {step}", given[step]
        model = typing.cast(type[BaseModel], model.model_fields[step].annotation)
    if first["type"] == "extra_forbidden":
        return BadChoice(unknown(f"{owner} has no parameter", key, model.model_fields), path)
    allowed = f"{key} {field_rule(model.model_fields[key])}"
    if first["type"] == "missing":
        return BadChoice(f"{owner} needs {allowed}", tuple(outer))
    return BadChoice(f"{owner} takes {allowed}, but got {shown(given[key])}", path)


def field_rule(info: FieldInfo) -> str:
    return rule(info.annotation, info.metadata)


def _path_in(given: Mapping[str, Any], location: tuple[Any, ...], error_type: str) -> tuple[Any, ...]:
    """Pydantic also names the branches of a union in a location; keep what leads through the value itself."""
    path: list[Any] = []
    here: Any = given
    for step in location:
        if isinstance(here, Mapping) and step in here:
            path.append(step)
            here = here[step]
        elif isinstance(here, Mapping) and error_type == "missing":
            path.append(step)
    return tuple(path)


def _label_parts(checked: BaseModel) -> list[str]:
    """Required parameters by value, others only where they differ from their default: `mae scale 2.6`."""
    parts: list[str] = []
    for key, info in type(checked).model_fields.items():
        value = getattr(checked, key)
        if info.is_required():
            parts.append(_word(value))
        elif value != info.default:
            parts += [key, *(_label_parts(value) if isinstance(value, BaseModel) else [_word(value)])]
    return parts


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
