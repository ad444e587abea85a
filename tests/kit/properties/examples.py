"""How many examples a property is tried with."""

import hypothesis

WHOLE = 100
"""What hypothesis tries of a property by itself, and what `make soak` has it try."""


def examples(whole: int) -> int:
    """As many of ``whole`` as the profile has tried of a hundred."""
    return whole * hypothesis.settings().max_examples // WHOLE
