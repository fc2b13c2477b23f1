"""A trial's supervisor whose workload is the stand-in beside this file."""

import sys
from pathlib import Path

from cgratio.trial import supervisor

STAND_IN = Path(__file__).with_name("workload.py")

supervisor.workload_command = lambda *, progress_fd: [sys.executable, str(STAND_IN), str(progress_fd)]
supervisor._FINAL_MAX_S = 2.0
sys.exit(supervisor.main(int(sys.argv[1])))
