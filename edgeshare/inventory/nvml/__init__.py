"""NVIDIA's management library: ``library`` begins it, the others ask it, and no other module does. Begin with ``nvml``,
the GPUs that a machine has.
"""
