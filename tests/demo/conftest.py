"""Where the tests of this folder find what they share with others."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "node"))  # the testbed: of several measurements one has to be right
