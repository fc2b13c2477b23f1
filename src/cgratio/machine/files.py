"""Small sysfs and procfs files: read one, or learn that it is not there."""

from pathlib import Path


def read_text(path: Path) -> str | None:
    """The stripped text of a small kernel file, or None where it is missing, unreadable or not text.

    Kernel files come and go (CPU hotplug, containers that mask `/sys`), and some answer `EINVAL` or `ENODATA`
    instead of a value, so any `OSError` means "not known".
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """The integer in a small kernel file, or None where there is none."""
    text = read_text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def colon_fields(text: str) -> dict[str, str]:
    """The `key: value` lines of, say, `/proc/cpuinfo` or `/proc/meminfo`; the first of a key wins."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    return fields
