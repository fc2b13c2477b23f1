"""From a file and `--set` to a specification; what is wrong is said in one line, with its place."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from cgratio.sweep.document import Document, Place, SpecError, kind, parse, read_document
from cgratio.sweep.spec import GROUPS, Spec, Trainer, axis_names, spellings

_MOST_SHOWN = 60  # characters of a wrong value


def load_spec(path: Path, *, overrides: tuple[str, ...] = ()) -> Spec:
    """Reads and checks a specification.

    Args:
        path: of a YAML file.
        overrides: `key.path=value` settings that replace what the file says; values are YAML.

    Raises:
        SpecError: file and line or setting, what is wrong and what would be right.
    """
    return _checked(_read(path, overrides))


def read_trainer_settings(overrides: tuple[str, ...]) -> dict[str, Any]:
    """The trainer's settings that `trainer.name=value` overrides give, for a run that has no file.

    Raises:
        SpecError: the setting, what is wrong and what would be right.
    """
    document = Document(path=Path("--set"), value={"name": "train", "axes": {}}, places={})
    for override in overrides:
        group, _, name = override.partition("=")[0].partition(".")
        if group != "trainer" or name in axis_names():
            known = ", ".join(Trainer.model_fields)
            raise SpecError(f"--set {override}: write it as --set trainer.NAME=VALUE; names are {known}")
        _apply(document, override)
    settings = _checked(document).trainer
    return settings.model_dump(include=settings.model_fields_set)


def _checked(document: Document) -> Spec:
    try:
        return Spec.model_validate(document.value)
    except ValidationError as error:
        raise _explained(document, error) from error


def located(path: Path, error: SpecError, *, overrides: tuple[str, ...] = ()) -> SpecError:
    """The same error with the place of the axis value that it is about, or else with the file."""
    document = _read(path, overrides)
    if error.axis == "exclude" and error.value in document.value.get("exclude", []):
        place: Place = ("exclude", document.value["exclude"].index(error.value))
        return SpecError(f"{document.where(place)}: {error}")
    for number, grid in _grids(document):
        for name in spellings(error.axis or ""):
            if name not in grid:
                continue
            values = grid[name] if isinstance(grid[name], list) else [grid[name]]
            if error.value in values:
                place = ("axes", number, name, values.index(error.value))
                return SpecError(f"{document.where(place)}: {error}")
    return SpecError(f"{path}: {error}")


def _read(path: Path, overrides: tuple[str, ...]) -> Document:
    document = read_document(path)
    for override in overrides:
        _apply(document, override)
    for number, grid in _grids(document):
        for names in map(spellings, grid):
            written = [name for name in names if name in grid]
            if len(written) > 1:
                place = document.where(("axes", number, written[-1]))
                raise SpecError(f"{place}: {' and '.join(written)} are the same axis; keep one")
    return document


def _grids(document: Document) -> list[tuple[int, dict[str, Any]]]:
    axes = document.value.get("axes")
    grids = axes if isinstance(axes, list) else [axes]
    return [(number, grid) for number, grid in enumerate(grids) if isinstance(grid, dict)]


def _apply(document: Document, override: str) -> None:
    said = f"--set {override}"
    key, equals, text = override.partition("=")
    *parents, last = key.split(".")
    if not equals or not all((*parents, last)):
        raise SpecError(f"{said}: write it as --set key=value, such as --set trainer.discount=0.98")
    value = parse(text, source=said)
    grids = [(("axes", number), grid) for number, grid in _grids(document)]
    # The trainer's shape is made of axes; setting one here fixes it for every grid.
    shape = parents == ["trainer"] and last not in Trainer.model_fields and last in axis_names()
    targets: list[tuple[Place, dict[str, Any]]] = []
    if shape or (parents == ["axes"] and grids):
        targets = list(grids)
    else:
        target = document.value
        for parent in parents:
            target = target.setdefault(parent, {})
            if not isinstance(target, dict):
                raise SpecError(f"{said}: {parent} is {kind(target)} and has no settings of its own")
        targets = [(tuple(parents), target)]
    if not targets:
        raise SpecError(f"{said}: the file has no axes to put it in")
    for place, target in targets:
        for name in spellings(last):
            target.pop(name, None)
        target[last] = value
        _move(document, (*place, last), said)


def _move(document: Document, place: Place, where: str) -> None:
    """From now on, a value and all inside it stand elsewhere."""
    place = document.as_written(place)
    for inner in [key for key in document.places if key[: len(place)] == place]:
        del document.places[inner]
    for length in range(1, len(place) + 1):
        document.places.setdefault(place[:length], where)


def _explained(document: Document, error: ValidationError) -> SpecError:
    """The first error of a validation, in one line with its place."""
    errors = error.errors()
    # A misspelt key is also a missing one: its own name helps more.
    first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
    names, location, field = _walk(first["loc"])
    key, wanted = ".".join(names), field.description if field else None
    if first["type"] == "extra_forbidden":
        unknown = str(first["loc"][-1])
        where, key = document.where((*location, unknown)), ".".join([*names, unknown])
        return SpecError(f"{where}: unknown key {key}; {_hint(names, unknown)}")
    if first["type"] == "value_error":
        about = f"{key}: " if key else ""
        return SpecError(f"{document.where(location)}: {about}{first['msg'].removeprefix('Value error, ')}")
    if first["type"] == "missing":
        return SpecError(f"{document.where(location)}: {key} is missing; it must be {wanted}")
    return SpecError(f"{document.where(location)}: {key} is {_shown(first['input'])}; it must be {wanted}")


def _walk(location: tuple[int | str, ...]) -> tuple[list[str], Place, FieldInfo | None]:
    """Follows a location of pydantic's through the groups, as far as these go.

    Returns:
        The keys, the location up to where it names parts of a type, and the field that stands there.
    """
    names: list[str] = []
    kept: list[int | str] = []
    model: type[BaseModel] | None = Spec
    field: FieldInfo | None = None
    for part in location:
        if isinstance(part, str):
            found = model.model_fields.get(spellings(part)[0]) if model else None
            if found is None:
                break
            field, model = found, GROUPS.get(part)
            names.append(part)
        kept.append(part)
    return names, tuple(kept), field


def _hint(names: list[str], unknown: str) -> str:
    if names != ["axes"] and unknown in axis_names():
        return f"it is an axis, write it as axes.{unknown}"
    group = GROUPS[names[0]] if names else Spec
    known = axis_names() if names == ["axes"] else set(group.model_fields)
    near = difflib.get_close_matches(unknown, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known here: {', '.join(sorted(known))}"


def _shown(value: object) -> str:
    """A wrong value as the file has it, shortened."""
    if isinstance(value, dict | list | None):
        return kind(value) if value or value is None else f"an empty {kind(value).removeprefix('a ')}"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
