"""Plugins of pytest, which `-p` names: tests that are held up (`slowly.py`), the rule of turns from its sources
(`interpreted_turns.py`).
"""
