"""Client programs with the hook in front of the driver: begin with `stage.py`; `manager.py` is the other side of the
wire, moved by a test (`connection.py`, `memory_answers.py`). `programs/` are the programs.
"""
