"""A YAML document that remembers where each of its values stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Place = tuple[int | str, ...]

_MOST_VALUES = 1_000_000  # aliases of aliases can mean more values than a file could hold


class SpecError(ValueError):
    """A specification that cannot be run; one line of what is wrong and what would be right.

    Attributes:
        axis, value: the axis value it is about, where the place in the file is not in the message yet.
    """

    def __init__(self, message: str, *, axis: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.axis = axis
        self.value = value


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A mapping read from YAML.

    Attributes:
        path: the file.
        value: what it says, as plain Python.
        places: where a value stands (`file:line`), by the path of keys and indices to it.
    """

    path: Path
    value: dict[str, Any]
    places: dict[Place, str]

    def where(self, location: Sequence[int | str]) -> str:
        """Where a value stands, or the closest enclosing one that the document has."""
        place = self.as_written(location)
        found = (self.places.get(place[:length]) for length in range(len(place), 0, -1))
        return next((where for where in found if where), str(self.path))

    def as_written(self, location: Sequence[int | str]) -> Place:
        """The path of keys and indices to a value: a grid that is written without a list has no index."""
        match location:
            case ("axes", int(), *inner) if ("axes", 0) not in self.places:
                return ("axes", *inner)
            case _:
                return tuple(location)


def read_document(path: Path) -> Document:
    """Reads a YAML mapping.

    Raises:
        SpecError: the file cannot be read, is not YAML, is not a mapping, or has a key twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: is not UTF-8 text ({error.reason})") from error
    value = parse(text, source=str(path), marked=True)
    if value is None:
        raise SpecError(f"{path}: is empty; it must hold name and axes")
    if not isinstance(value, dict):
        raise SpecError(f"{path}: is {kind(value)}; it must be a mapping with name and axes")
    root = yaml.compose(text, Loader=_Loader)
    assert root, "a mapping has a node"
    places: dict[Place, str] = {}
    try:
        _index(path, root, (), places)
    except RecursionError as error:
        raise SpecError(f"{path}: an alias (*) holds itself; write the value out") from error
    return Document(path=path, value=value, places=places)


class _Loader(yaml.SafeLoader):
    """Reads `6e-4` as a number, as YAML 1.2 and people do; YAML 1.1 wants `6.0e-4`."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def parse(text: str, *, source: str, marked: bool = False) -> Any:
    """Reads YAML.

    Args:
        text: to read.
        source: where it is from; errors begin with it.
        marked: whether they name the line too.

    Raises:
        SpecError: it is not YAML.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe one
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if marked and error.problem_mark else ""
        raise SpecError(f"{source}{line}: is not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SpecError(f"{source}: is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise SpecError(f"{source}: is nested too deeply to be a sweep") from error


def kind(value: object) -> str:
    """What a YAML value is, in a person's words."""
    kinds = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", type(None): "empty"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else "something else")


def _index(path: Path, node: yaml.Node, place: Place, places: dict[Place, str]) -> None:
    places.setdefault(place, f"{path}:{node.start_mark.line + 1}")
    if len(places) > _MOST_VALUES:
        raise SpecError(f"{path}: has more than {_MOST_VALUES:,} values; name fewer")
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            where = f"{path}:{key.start_mark.line + 1}"
            if not key.tag.endswith((":str", ":merge")):
                raise SpecError(f"{where}: the key {key.value} is not a word; put it in quotes if it is one")
            inner = (*place, str(key.value))
            if inner in places:
                raise SpecError(f"{where}: the key {key.value} stands here twice; keep one")
            places[inner] = where
            _index(path, value, inner, places)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _index(path, item, (*place, index), places)
