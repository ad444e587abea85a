"""A simulated machine alone (`simulated.py`), and its driver through ctypes (`driver_calls.py`) and nvidia-ml-py
(`nvml_script.py`). A clock for what looks at one: `clock.py`.
"""
