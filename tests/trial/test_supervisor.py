import pytest

from cgratio.trial.supervisor import exit_reason


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (-9, ("killed:SIGKILL", None, "SIGKILL")),
        (-6, ("killed:SIGABRT", None, "SIGABRT")),
        (134, ("killed:SIGABRT", 134, "SIGABRT")),
        (1, ("exit:1", 1, None)),
        (0, ("exit:0", 0, None)),
        (255, ("exit:255", 255, None)),
    ],
)
def test_how_a_process_ended_is_read(code, expected):
    assert exit_reason(code) == expected
