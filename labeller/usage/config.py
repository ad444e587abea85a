"""What can be set of watching the use of accelerators, below the key ``usage`` of the labeller's YAML file."""

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _absolute(path: PurePosixPath) -> PurePosixPath:
    if not path.is_absolute():
        raise ValueError("has to be an absolute path: it is looked for below the root")
    # Two slashes are a root of their own there (POSIX.1, 4.13).
    return PurePosixPath("/", *path.parts[1:])


class UsageConfig(BaseModel):
    """The settings of watching. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    interval_s: Annotated[float, Field(ge=0.5, le=3600)] = 5
    """How often the accelerators are looked at. A reading of three times that age is shown no more."""

    tegrastats: Annotated[PurePosixPath, AfterValidator(_absolute)] = PurePosixPath("/usr/bin/tegrastats")
    """Where Jetson Linux has that program, as the node sees it. Before R28 it lay in the home folder, where others may
    write: this is run with the labeller's rights."""
