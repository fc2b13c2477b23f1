"""`python -m cgratio.trial`: one trial, its request on standard input."""

import sys

from cgratio.trial.supervisor import main

sys.exit(main(int(sys.argv[1])))
