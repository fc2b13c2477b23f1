import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgratio.workload.protocol import Count, Failure, Final, Ready, decode, encode, write

TEXT = st.text(max_size=20)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
MESSAGES = st.one_of(
    st.builds(Ready),
    st.builds(Final, time_s=NUMBER, drifted=st.lists(TEXT, max_size=3)),
    st.builds(Failure, code=TEXT, message=TEXT),
    st.builds(
        Count,
        time_s=NUMBER,
        lag_sum=NUMBER,
        recent_return=st.none() | NUMBER,
        environment_cpu_s=st.none() | NUMBER,
        device_cpu_s=st.none() | NUMBER,
        stages=st.dictionaries(TEXT, NUMBER, max_size=3),
    ),
)


@given(
    message=MESSAGES.filter(
        lambda m: not isinstance(m, Ready) or (m.time_s == m.time_s and abs(m.time_s) < 1e300)
    )
)
def test_what_is_written_is_read(message):
    assert decode(encode(message).strip()) == message


@pytest.mark.parametrize(
    "line", [b"", b"hello", b"[]", b"{}", b'{"kind": "x"}', b'{"kind": "final"}', b"null"]
)
def test_a_line_that_is_no_message_is_refused(line):
    with pytest.raises(ValueError, match="not a progress line"):
        decode(line)


def test_a_reader_that_has_gone_is_not_the_writers_error():
    reader, writer = os.pipe()
    os.close(reader)
    write(writer, Final(time_s=0.0, drifted=[]))
    os.close(writer)
