"""A node's manager on a simulated machine: begin with `testbed.py`; `wire_client.py` is a client that does as a test
says, `attacker.py` one that is hostile. Programs that keep its GPUs busy (`busy.py`), and programs that ask a driver
which refuses, or lies, all that the product asks (`asks_nvml.py`, `lying_nvml.py`).
"""
