"""The arbiter of one device alone, with no process and no clock (`device.py`), and what it promises (`bound.py`)."""
