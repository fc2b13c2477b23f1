"""`python -m cgratio`."""

from cgratio.cli import main

main()
