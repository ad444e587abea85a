"""Simulations that need no process: the rules on a `device/`, the assigner in a `cluster/`."""
