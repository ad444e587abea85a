"""What is simulated, as data (`case.py`), at which pace (`paces.py`), and what came of it (`report.py`, `oracles.py`).
`python -m tests.kit.virtual.cases.explore` runs random ones.
"""
