"""What GPUs can be divided into. (NVIDIA, "MIG User Guide", "Supported MIG Profiles"; `nvidia-smi mig -lgip`.)"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MigProfile:
    """A shape of MIG device, with one compute instance."""

    memory_mib: int
    slices: int
    """Of the seven of the GPU."""
    multiprocessors: int
    copy_engines: int
    decoders: int = 0
    jpeg_engines: int = 0
    ofa_engines: int = 0


A100_40GB: Mapping[str, MigProfile] = {
    "1g.5gb": MigProfile(4864, 1, 14, 1),
    "2g.10gb": MigProfile(9984, 2, 28, 2, decoders=1),
    "3g.20gb": MigProfile(20096, 3, 42, 3, decoders=2),
    "4g.20gb": MigProfile(20096, 4, 56, 4, decoders=2),
    "7g.40gb": MigProfile(40536, 7, 98, 7, decoders=5, jpeg_engines=1, ofa_engines=1),
}
"""Memory nearly so."""

H100_80GB: Mapping[str, MigProfile] = {
    "1g.10gb": MigProfile(9984, 1, 16, 1, decoders=1, jpeg_engines=1),
    "1g.10gb+me": MigProfile(9984, 1, 16, 1, decoders=1, jpeg_engines=1, ofa_engines=1),
    "1g.20gb": MigProfile(20096, 1, 26, 1, decoders=1, jpeg_engines=1),
    "2g.20gb": MigProfile(20096, 2, 32, 2, decoders=2, jpeg_engines=2),
    "3g.40gb": MigProfile(40448, 3, 60, 3, decoders=3, jpeg_engines=3),
    "4g.40gb": MigProfile(40448, 4, 64, 4, decoders=4, jpeg_engines=4),
    "7g.80gb": MigProfile(81152, 7, 132, 8, decoders=7, jpeg_engines=7, ofa_engines=1),
}
"""Memory as listed in GiB, rounded to 128 MiB."""
