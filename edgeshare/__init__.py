"""edgeshare lets several pods share one accelerator. This package is the contract that its parts meet in."""

__version__ = "0.1.0"
