import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def run(code):
    """Runs a script that prints what it saw, in a process of its own: it becomes a subreaper."""
    script = f"STUBBORN = {STUBBORN!r}\n" + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


def test_descendants_are_ended_also_orphans_and_those_of_other_sessions():
    left, killed = run(
        """
        import subprocess, sys, time, psutil
        from cgratio.machine.processes import adopt_orphans, end_descendants
        adopt_orphans()
        # A child that starts a stubborn grandchild in a session of its own, and ends.
        start = f"[sys.executable, '-c', {STUBBORN!r}], start_new_session=True"
        code = f"import subprocess, sys; subprocess.Popen({start})"
        subprocess.run([sys.executable, "-c", code], check=True)
        subprocess.Popen([sys.executable, "-c", STUBBORN])
        time.sleep(0.5)
        assert len(psutil.Process().children()) == 2
        killed = end_descendants(patience_s=0.5)
        print(len(psutil.Process().children()), len(killed))
        """
    )
    assert (left, killed) == ("0", "2")


def test_what_ends_when_asked_is_not_killed():
    (killed,) = run(
        """
        import subprocess, sys, time
        from cgratio.machine.processes import end_descendants
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        time.sleep(0.3)
        print(len(end_descendants()))
        """
    )
    assert killed == "0"


def test_a_spared_child_goes_on():
    (alive,) = run(
        """
        import subprocess, sys
        from cgratio.machine.processes import end_descendants
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        end_descendants(spare=frozenset({child.pid}))
        print(child.poll() is None)
        child.kill()
        """
    )
    assert alive == "True"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_dies_with_its_parent_whenever_that_died(moment):
    parent = "os.getppid()" if moment == "after" else str(2**22 + 1)
    code = (
        "import os, signal, time\nfrom cgratio.machine.processes import die_with_parent\n"
        f"die_with_parent(signal.SIGKILL, parent={parent})\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    )
    if moment == "before":
        assert (
            subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode
            == -signal.SIGKILL
        )
        return
    middle = (
        f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {code!r}])\ntime.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", middle], stdout=subprocess.PIPE, text=True) as started:
        pid = int(started.stdout.readline())
        started.kill()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _runs(pid):
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
