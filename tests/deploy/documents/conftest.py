"""What stands in the documents, for those who look at it from several sides."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
