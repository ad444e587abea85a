"""Processes that tests start, and waiting for them.

Begin with `forked.py`, which starts daemons of edgeshare cheaply, and with `waiting.py`; `command.py` runs a program of
others to its end, `daemons.py` keeps some up that outlive a script, `lease.py` has one take a file's lease.
"""
