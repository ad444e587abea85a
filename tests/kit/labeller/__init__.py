"""Machines as their files tell of them (`machines.py`), and the labeller on them: as functions (`labelling.py`), as a
program (`labeller_under_test.py`), as what watches a machine's use (`watched.py`).
"""
