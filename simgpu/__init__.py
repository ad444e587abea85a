"""A simulated NVIDIA machine: a driver that runs without a GPU, and what reads, makes and breaks it."""
