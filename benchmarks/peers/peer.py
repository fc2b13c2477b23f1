"""What a public trainer is to the benchmark: where it comes from, how it starts and how it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

SHIMS = Path(__file__).parent / "shims"
STAND_INS = SHIMS / "stand_ins"


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A repository at one commit.

    Attributes:
        url: that git fetches from.
        commit: in full.
        paths: of it that are checked out.
    """

    url: str
    commit: str
    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A public trainer at a pinned version.

    Attributes:
        name: in the table.
        folder: of its own in the cache, for its packages and its code.
        setting: in the table: what was asked of it.
        requirements: packages that its environment gets; torch and envpool are those of this process.
        unbuilt: packages that are installed after them without what they require.
        checkout: its own code, where no package has it.
        arguments: of its Python interpreter, for its code in a folder.
        prepare: what is done in the folder in which it will run, before it starts.
        shims: modules in `shims` that it needs to run with today's packages.
        path: folders of Python modules besides, for its code in a folder.
        environment: variables.
        report, samples_each: see `launched.Program`.
    """

    name: str
    folder: str
    setting: str
    requirements: tuple[str, ...]
    unbuilt: tuple[str, ...] = ()
    checkout: Checkout | None = None
    arguments: Callable[[Path], list[str]]
    prepare: Callable[[Path, Path], None] | None = None
    shims: tuple[str, ...] = ()
    path: Callable[[Path], list[Path]] = lambda _: []
    environment: dict[str, str] = field(default_factory=dict)
    report: str
    samples_each: float = 1.0
