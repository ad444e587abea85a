"""A node's manager on a simulated machine: begin with `testbed.py`, and `allocations.py` for what it is asked;
`wire_client.py` is a client that does as a test says, `attacker.py` one that is hostile. Programs that keep its GPUs
busy (`busy.py`) or get memory under its caps (`memory_program.py`), and programs that ask a driver which refuses, or
lies, all that the product asks (`asks_nvml.py`, `lying_nvml.py`).
"""
