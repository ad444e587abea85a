"""The arbiter of one device alone, with no process and no clock: with allocations (`device.py`), what it promises
(`bound.py`), and worlds that hold it to that: of turns (`world.py`), and where several are let in at once
(`openings_world.py`), on a `shared_device.py`; and gates that say nothing (`silent_gates.py`).
"""
