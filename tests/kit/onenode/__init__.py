"""A real Kubernetes of one node: its programs, its images, and the processes it is made of.

Begin with `node.py`; `python -m tests.kit.onenode.up` starts it. `installed/` is edgeshare on it, `pods/` what runs
there, `watches/` what goes on, told as it happens.
"""
