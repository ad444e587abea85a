"""A few pages over HTTP for Prometheus and probes: begin with ``web``."""
