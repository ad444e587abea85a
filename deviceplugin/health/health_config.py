"""What can be set of a device's health, below the key ``health`` of the plugin's YAML file."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_serializer

from deviceplugin.health.rules import IGNORED_XIDS, Settings
from edgeshare.contract.units import NS_PER_S


class HealthConfig(BaseModel):
    """The settings of health. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ignored_xids: frozenset[Annotated[int, Field(ge=1, le=1024)]] = IGNORED_XIDS
    """XIDs that change nothing. A list of one's own takes the place of the default one."""

    passing_xid_quiet_s: Annotated[float, Field(ge=0, le=86_400)] = 300
    """After an XID that NVIDIA's catalogue says to ignore, or to restart the application for: so long without another
    one until the GPU is healthy again."""

    temperature_limit_c: Annotated[int, Field(ge=20, le=150)] | None = None
    """From this temperature on a GPU is not healthy. Default: none: GPUs slow down before heat harms them."""

    temperature_margin_c: Annotated[int, Field(ge=1, le=50)] = 5
    """So many degrees below the limit it has to be …"""

    temperature_calm_s: Annotated[float, Field(ge=0, le=86_400)] = 60
    """… for so long, to be healthy again."""

    pending_remap_counts: bool = False
    """Whether a GPU with a row of memory that waits for a reset to be remapped is not healthy. NVIDIA says that new
    workloads can be started on it all the same ("GPU Memory Error Management", Row-remapping pending flag)."""

    @field_serializer("ignored_xids", when_used="json")
    def _in_order(self, xids: frozenset[int]) -> list[int]:
        """A set's own order is another one in another build of Python, and the chart's schema names the default."""
        return sorted(xids)

    def settings(self) -> Settings:
        """What is configured, as the rules take it."""
        return Settings(
            ignored_xids=self.ignored_xids,
            passing_xid_quiet_ns=round(self.passing_xid_quiet_s * NS_PER_S),
            temperature_limit_c=self.temperature_limit_c,
            temperature_margin_c=self.temperature_margin_c,
            temperature_calm_ns=round(self.temperature_calm_s * NS_PER_S),
            pending_remap_counts=self.pending_remap_counts,
        )
