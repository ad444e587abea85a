"""What a test's process may do to others."""

import os

import pytest

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
"""The mark of a test that becomes another user, or lets one in."""
