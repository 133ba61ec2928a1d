"""The JSON schema of a study file, for editors that complete and check while one types."""

from typing import Any

from study.definition import KEYS, MAX_SEEDS, REQUIRED, STUDY_AXES, Header
from trainables.choices import Menu
from trainables.trial import MENUS, Settings


def schema() -> dict[str, Any]:
    axes = {axis: _one_or_several(_axis(axis)) for axis in STUDY_AXES}
    count = {"type": "integer", "minimum": 1, "maximum": MAX_SEEDS}
    axes["seeds"] = {"anyOf": [count, {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}]}
    header = Header.model_json_schema()["properties"]
    case = {"type": "object", "properties": axes, "additionalProperties": False}
    properties = {**header, **axes, "cases": {"type": "array", "items": case}}
    some_cases = {"required": ["study", "cases"], "properties": {"cases": {"minItems": 1}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tautune study",
        "type": "object",
        "properties": {key: properties[key] for key in KEYS},
        "anyOf": [{"required": ["study", *REQUIRED]}, some_cases],
        "additionalProperties": False,
    }


def _axis(axis: str) -> dict[str, Any]:
    if axis not in MENUS:
        return dict(Settings.model_json_schema()["properties"][axis])
    menu = MENUS[axis]
    bare = [{"const": name} for name in menu.entries if _is_bare(menu, name)]
    return {"anyOf": [*bare, *(_entry(menu, name) for name in menu.entries)]}


def _entry(menu: Menu, name: str) -> dict[str, Any]:
    found = menu.parameters(name).model_json_schema()
    return {
        "type": "object",
        "description": found.get("description", ""),
        "properties": {"name": {"const": name}, **_inlined(found.get("properties", {}), found.get("$defs", {}))},
        "required": ["name", *found.get("required", [])],
        "additionalProperties": False,
        **({"not": {"required": sorted(menu.exclusive)}} if menu.exclusive else {}),
    }


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if "$ref" in value:
            return _inlined(definitions[value["$ref"].rsplit("/", 1)[-1]], definitions)
        return {key: _inlined(item, definitions) for key, item in value.items()}
    return [_inlined(item, definitions) for item in value] if isinstance(value, list) else value


def _is_bare(menu: Menu, name: str) -> bool:
    return not any(info.is_required() for info in menu.parameters(name).model_fields.values())


def _one_or_several(item: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}
