"""What all parts agree on: names, units, devices, errors, assignments. No dependency, no IO; begin with ``names``."""
