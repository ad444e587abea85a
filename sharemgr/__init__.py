"""The share managers: ``node``, which grants a node's devices to their clients (begin with ``node/manager``), and
``cluster``, the assigner, which gives a pod its node and devices (``cluster/service``). ``replay`` tries the assigner's
policies on what was recorded and published.
"""
