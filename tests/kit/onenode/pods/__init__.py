"""Pods on the node: begin with `pods.py`. Who binds them (`binder.py`), who has which units (`given.py`), what they
executed (`executed.py`), a storm of them (`storm.py`).
"""
