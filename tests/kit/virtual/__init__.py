"""The node slice on a virtual clock: begin with `world.py`, which runs a case in a process of its own. `cases/` is what
is simulated, `figures/` what is measured of it, `vt/` the virtual machine, `programs/` what clients run.
"""
