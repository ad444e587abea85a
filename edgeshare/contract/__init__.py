"""What all parts agree on: names, units, devices and their kinds, classes of shares, health, errors, assignments, an
allocation's lifetime. No dependency, no IO; begin with ``names``.
"""
