"""What the device plugin keeps on its node, without a kubelet: `store.py`."""
