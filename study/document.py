"""A YAML file as plain data that remembers where every value stands, so that an error can name the line."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

MAX_BYTES = 1_000_000
MAX_VALUES = 1_000_000  # an alias of an alias of an alias can make a small file huge
MAX_DEPTH = 30
PLAIN_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")

Place = tuple[Any, ...]


class BadStudy(ValueError):
    """One sentence for the person who wrote the study file or the command."""


@dataclass
class Document:
    """`origins` maps the path of a value to where it was written: «demo.yaml:9», or «--set epochs=x»."""

    name: str
    data: dict[str, Any]
    origins: dict[Place, str] = field(default_factory=dict)

    def complaint(self, message: str, path: Place = ()) -> BadStudy:
        while path and path not in self.origins:
            path = path[:-1]
        return BadStudy(f"{self.origins.get(path, self.name)}: {message}")


def read_document(path: Path) -> Document:
    name = path.name
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadStudy(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise BadStudy(f"{name}: has {len(raw):,} bytes; a study file has at most {MAX_BYTES:,}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadStudy(f"{name}:1: is not a text file in UTF-8") from None
    node = _composed(name, text)
    if node is None:
        raise BadStudy(f"{name}:1: is empty; a study file has at least study, dataset, model, loss, optimizer and epochs")
    if not isinstance(node, MappingNode):
        raise BadStudy(f"{name}:{node.start_mark.line + 1}: a study file is a mapping such as `study: my-study`")
    return _Reader(name).document(node)


def read_value(text: str) -> Any:
    """A value given on the command line, read as YAML: 1e-3 is a number, [a, b] a list."""
    try:
        node = _composed("", text)
        return None if node is None else _Reader("").value(node, ())
    except BadStudy as error:
        raise BadStudy(str(error).partition(": ")[2]) from None


def _composed(name: str, text: str) -> Node | None:
    lines = text.count("\n", 0, len(text.rstrip("\n"))) + 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)  # legal, and nothing to us
            return _yaml().compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = min(mark.line + 1, lines) if mark else 1  # what is never closed is missed behind the last line
        raise BadStudy(f"{name}:{line}: is not valid YAML: {error.problem or error.context}") from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadStudy(f"{name}:{line}: is not a text file: it has the character {text[error.position]!r}") from None
    except RecursionError:
        raise BadStudy(f"{name}:1: is nested too deeply") from None


class _Reader:
    def __init__(self, name: str):
        self.name = name
        self.origins: dict[Place, str] = {}
        self.count = 0
        self.constructor = _yaml().constructor

    def document(self, root: MappingNode) -> Document:
        return Document(self.name, self.value(root, ()), self.origins)

    def value(self, node: Node, path: Place) -> Any:
        self.count += 1
        if self.count > MAX_VALUES or len(path) > MAX_DEPTH:
            raise BadStudy(f"{self._where(node)}: is nested too deeply, or expands to too many values")
        self.origins.setdefault(path, self._where(node))
        if not isinstance(node, ScalarNode) and node.tag not in PLAIN_TAGS:
            raise BadStudy(f"{self._where(node)}: a study file has no use for the tag {node.tag!r}")
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node)

    def _scalar(self, node: Node) -> Any:
        try:
            value = self.constructor.construct_object(node)
            str(value).encode()  # an escape such as \ud800 is no character, and no store would take it
        except (YAMLError, ValueError, LookupError, TypeError) as error:
            problem = getattr(error, "problem", None) or str(error)
            raise BadStudy(f"{self._where(node)}: {node.value!r} cannot be read: {problem}") from None
        return value

    def _mapping(self, node: MappingNode, path: Place) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise BadStudy(f"{self._where(key_node)}: a key must be a plain word")
            key = str(key_node.value)
            if key == "<<":
                raise BadStudy(f"{self._where(key_node)}: YAML 1.2 has no merge key <<; write the values out")
            if key in found:
                raise BadStudy(f"{self._where(key_node)}: {key!r} is given twice")
            self.origins[(*path, key)] = self._where(key_node)
            found[key] = self.value(value_node, (*path, key))
        return found

    def _where(self, node: Node) -> str:
        return f"{self.name}:{node.start_mark.line + 1}"


def _yaml() -> YAML:
    return YAML(typ="safe", pure=True)
