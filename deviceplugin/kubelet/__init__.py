"""The kubelet's side: its calls (``service``, where to begin), the list that it is sent, and being registered."""
