"""A YAML document that remembers on which line each of its values stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class SpecError(ValueError):
    """A specification that cannot be run; one sentence of what is wrong and what would be right.

    Attributes:
        axis, value: the axis value it is about, where the place in the file is not in the message yet.
    """

    def __init__(self, message: str, *, axis: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.axis = axis
        self.value = value


AXIS_NAMES = {"unroll_length": ("unroll_length", "unroll"), "learner_batch": ("learner_batch", "batch")}
"""Axes that may be written by a short name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A mapping read from YAML.

    Attributes:
        path: the file.
        value: what it says, as plain Python.
        lines: line number (from 1) by the path of keys and indices.
    """

    path: Path
    value: dict[str, Any]
    lines: dict[tuple[int | str, ...], int]

    def where(self, location: Sequence[int | str]) -> str:
        """`file:line` of a place, or of the closest enclosing one that the file has."""
        for length in range(len(location), 0, -1):
            # One grid may be written without a list, and one value too.
            for key in (tuple(location[:length]), _without_indices(location[:length])):
                if key in self.lines:
                    return f"{self.path}:{self.lines[key]}"
        return str(self.path)


def located(path: Path, error: SpecError) -> SpecError:
    """The same error with the file, and the line where its axis value stands if the file names it."""
    document = read_document(path)
    if error.axis == "exclude" and error.value in document.value.get("exclude", []):
        place: tuple[int | str, ...] = ("exclude", document.value["exclude"].index(error.value))
        return SpecError(f"{document.where(place)}: {error}")
    grids = document.value.get("axes")
    for number, grid in enumerate(grids if isinstance(grids, list) else [grids]):
        for name in AXIS_NAMES.get(error.axis or "", (error.axis or "",)):
            if not isinstance(grid, dict) or name not in grid:
                continue
            values = grid[name] if isinstance(grid[name], list) else [grid[name]]
            if error.value in values:
                place = ("axes", number, name, values.index(error.value))
                return SpecError(f"{document.where(place)}: {error}")
    return SpecError(f"{path}: {error}")


def _without_indices(location: Sequence[int | str]) -> tuple[int | str, ...]:
    return tuple(part for part in location if isinstance(part, str))


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
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        value = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SpecError(f"{path}:{line}: is not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SpecError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise SpecError(f"{path}: is nested too deeply to be a sweep") from error
    if not isinstance(value, dict):
        raise SpecError(f"{path}: must hold a mapping with name and axes, not {type(value).__name__}")
    assert root, "a mapping has a node"
    lines: dict[tuple[int | str, ...], int] = {}
    try:
        _index(path, root, (), lines)
    except RecursionError as error:
        raise SpecError(f"{path}: an alias (*) holds itself; write the value out") from error
    return Document(path=path, value=value, lines=lines)


def _index(
    path: Path,
    node: yaml.Node,
    place: tuple[int | str, ...],
    lines: dict[tuple[int | str, ...], int],
) -> None:
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line + 1
            inner = (*place, str(key.value))
            if inner in lines:
                raise SpecError(f"{path}:{line}: the key {key.value} stands here twice; keep one")
            lines[inner] = line
            _index(path, value, inner, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _index(path, item, (*place, index), lines)
