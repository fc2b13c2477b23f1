"""Gives each peer an environment and a checkout of its own under the cache, once.

An environment sees this process's packages behind its own, so that torch and envpool are the same builds for
all who use them, and are not downloaded again for each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

from launched import Program
from peers.peer import SHIMS, Checkout, Peer

DEFAULT = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "cgratio-benchmarks"
_PATIENCE_S = 1800  # for a download


class UnavailableError(Exception):
    """A peer cannot be had here; the message says why."""


def ready(peer: Peer, *, cache: Path) -> Program:
    """Installs a peer if it is not yet, and returns what starts it.

    Raises:
        UnavailableError: it cannot be installed.
    """
    folder = cache.resolve() / peer.folder
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "source"
    if peer.checkout and not source.exists():
        _check_out(peer.checkout, source)
    python = folder / "venv" / "bin" / "python"
    _install(peer, folder, python)
    work = folder / "work"  # its logs and checkpoints; made anew in each benchmark
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    if peer.prepare:
        peer.prepare(source, work)
    paths = [SHIMS, *peer.path(source)]
    return Program(
        command=[str(python), *peer.arguments(source)],
        report=peer.report,
        samples_each=peer.samples_each,
        environment={
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "BENCHMARK_SHIMS": ",".join(peer.shims),
            "HOME": str(work),  # whatever it caches or logs stays in its own folder
            "TMPDIR": str(work),
            "CUDA_VISIBLE_DEVICES": "",  # all are compared on CPUs
            **peer.environment,
        },
        folder=work,
    )


def _check_out(checkout: Checkout, source: Path) -> None:
    """Fetches one commit without its history, and of it only what is needed."""
    if not shutil.which("git"):
        raise UnavailableError("git is not installed")
    partial = source.with_name("source.partial")
    shutil.rmtree(partial, ignore_errors=True)
    git = ["git", "-C", str(partial)]
    for command in (
        ["git", "init", "--quiet", str(partial)],
        [*git, "remote", "add", "origin", checkout.url],
        [*git, "sparse-checkout", "set", "--no-cone", *checkout.paths],
        [*git, "fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", checkout.commit],
        [*git, "checkout", "--quiet", checkout.commit],
    ):
        _do(command, f"{checkout.url} cannot be fetched")
    partial.rename(source)


def _install(peer: Peer, folder: Path, python: Path) -> None:
    stamp = folder / "installed"
    wanted = "\n".join([sys.version, version("torch"), version("envpool"), *peer.requirements, *peer.unbuilt])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    environment = python.parent.parent
    shutil.rmtree(environment, ignore_errors=True)
    _do([sys.executable, "-m", "venv", str(environment)], "no environment could be made")
    own = environment / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (own / "behind.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _do([*pip, *peer.requirements], "its packages cannot be installed")
    if peer.unbuilt:
        _do([*pip, "--no-deps", "--no-build-isolation", *peer.unbuilt], "it cannot be installed")
    stamp.write_text(wanted)


def _do(command: list[str], failure: str) -> None:
    """Runs a step of an installation.

    Raises:
        UnavailableError: it failed; the message starts with `failure`.
    """
    # A folder of modules that this process was given must not reach another interpreter.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_S, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{failure}: not done after {_PATIENCE_S / 60:g} minutes") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith(("error", "fatal"))]
        reason = (errors or lines or [f"exit code {done.returncode}"])[-1]
        raise UnavailableError(f"{failure}: {reason[:200]}")
