import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgratio.machine.cpulist import CpuListError, format_cpu_list, parse_cpu_list


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", set()),
        (" \n", set()),
        ("0", {0}),
        ("0-3,8\n", {0, 1, 2, 3, 8}),
        ("8,0-3", {0, 1, 2, 3, 8}),
        ("0-7:2/4", {0, 1, 4, 5}),
        ("0-7:1/2,9", {0, 2, 4, 6, 9}),
        ("5-5", {5}),
    ],
)
def test_the_kernels_format_is_read(text: str, cpus: set[int]) -> None:
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize(
    "text", ["a", "1,", ",1", "3-1", "-1", "0-7:0/4", "0-7:5/4", "0-7:2", "1.5", "0-9999999999", "٣"]
)
def test_other_text_is_refused_with_the_part_that_is_wrong(text: str) -> None:
    with pytest.raises(CpuListError, match="should"):
        parse_cpu_list(text)


@given(st.frozensets(st.integers(0, 1000)))
def test_what_is_written_reads_back(cpus: frozenset[int]) -> None:
    assert parse_cpu_list(format_cpu_list(cpus)) == cpus


def test_the_written_form_is_canonical() -> None:
    assert format_cpu_list([8, 3, 2, 1, 0, 0]) == "0-3,8"
    assert format_cpu_list([]) == ""
