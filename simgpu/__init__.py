"""A simulated NVIDIA machine: a driver that runs without a GPU, and what reads, makes and breaks it.

In Python: ``create`` makes a machine, ``machine`` reads and breaks it (begin there), ``models`` and ``paces`` are what
it can be, ``trees`` what a kernel says of a Jetson or a Coral; ``stage/`` is a machine with a manager and programs on
it. In C: ``driver/`` is the driver (``driver/README.md`` has its chapters), ``nvml/`` the management library,
``machine/`` the shared file that both work on, ``observer/`` the way to it from Python, ``workload/`` the program
``burn``, ``tpu/`` the EdgeTPUs. Of edgeshare it uses the contract and ``client``; of the product only the command line
uses it.
"""
