"""What is wrong with what an API server says, in words."""

from pydantic import ValidationError


def first_fault(error: ValidationError) -> str:
    """The first thing that is wrong with what somebody told, and where, in one line."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
