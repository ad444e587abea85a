"""How busy the accelerators are, as Prometheus metrics: begin with ``watching``. ``nvml`` asks NVIDIA's driver;
``tool`` follows the program ``tegrastats``, whose lines the module of that name reads. Of the labeller it uses
``config`` alone.
"""
