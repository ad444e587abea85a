"""The arbiter of one device alone, with no process and no clock: with allocations (`device.py`), what it promises
(`bound.py`), and a world that holds it to that (`world.py`).
"""
