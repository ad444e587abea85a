"""A node with a kubelet that does as a test says (`scripted_kubelet.py`; what it tells of pods: `pod_resources.py`),
and edgeshare's daemons on it: begin with `node_under_test.py`. `wishes.py` is what pods ask for.
"""
