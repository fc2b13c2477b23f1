"""The kernel's CPU list format, as in `/sys/devices/system/cpu/online` and `taskset -c`.

Source: kernel doc, "admin-guide/kernel-parameters", section *cpu lists*: comma separated numbers and ranges,
where a range may take the form `first-last:used/group` (the first `used` CPUs of every `group`).
"""

import re
from collections.abc import Iterable, Iterator

_PART = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+)(?::(?P<used>\d+)/(?P<group>\d+))?)?", re.ASCII)
# A typing error such as `0-99999999999` should be an error, not an attempt to fill the memory.
# Linux caps NR_CPUS at 8192 on x86 and arm64; this leaves a wide margin.
_LARGEST_ID = 65_535


class CpuListError(ValueError):
    """A text is not a CPU list."""


def parse_cpu_list(text: str) -> frozenset[int]:
    """Reads a CPU list.

    Args:
        text: For example `0-3,8` or `0-7:2/4` (= 0,1,4,5). Empty text and an empty line are the empty set,
            which is what the kernel writes for a NUMA node that has memory only.

    Returns:
        The CPU ids.

    Raises:
        CpuListError: If a part is neither a number, a range nor a strided range.
    """
    if not text.strip():
        return frozenset()
    return frozenset(cpu for part in text.split(",") for cpu in _parse_part(part.strip(), text=text.strip()))


def format_cpu_list(cpus: Iterable[int]) -> str:
    """Writes a set of CPU ids in the one canonical form: sorted, consecutive ids joined (`0-3,8`)."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in _runs(cpus))


def _parse_part(part: str, *, text: str) -> range | list[int]:
    match = _PART.fullmatch(part)
    if match is None:
        raise CpuListError(f"CPU list {text!r}: {part!r} should be a number or a range, as in '0-3,8'")
    first = int(match["first"])
    last = first if match["last"] is None else int(match["last"])
    if last < first:
        raise CpuListError(f"CPU list {text!r}: {part!r} should run upwards, as in '{last}-{first}'")
    if last > _LARGEST_ID:
        raise CpuListError(f"CPU list {text!r}: CPU {last} should be at most {_LARGEST_ID}")
    if match["used"] is None:
        return range(first, last + 1)
    used, group = int(match["used"]), int(match["group"])
    if not 0 < used <= group:
        raise CpuListError(f"CPU list {text!r}: {part!r} should use between 1 and {group} CPUs of each group")
    return [cpu for cpu in range(first, last + 1) if (cpu - first) % group < used]


def _runs(cpus: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yields the runs of consecutive ids as (first, last)."""
    ordered = sorted(set(cpus))
    if not ordered:
        return
    first = last = ordered[0]
    for cpu in ordered[1:]:
        if cpu != last + 1:
            yield first, last
            first = cpu
        last = cpu
    yield first, last
