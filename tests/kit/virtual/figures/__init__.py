"""Figures that are taken on the virtual clock (`figures.py`), and what they were when they were last recorded
(`ratchet.py`).
"""
