"""Lets the tests of this folder import `generate`, which the import mode would otherwise not find."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
