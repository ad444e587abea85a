"""Programs on one simulated device, under a rule: `simulated_device.py` in C for what takes long, `device_simulator.py`
with a real Arbiter. `gate_figures.py` is what the rule of the gates is judged by.
"""
