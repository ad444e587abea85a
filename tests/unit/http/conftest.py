"""What the tests of this folder have in common is beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
