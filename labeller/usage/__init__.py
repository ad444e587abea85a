"""How busy the accelerators are, as Prometheus metrics: begin with ``watching``. ``driver`` asks NVIDIA's driver;
``tool`` follows ``tegrastats``, whose lines the module of that name reads. Of the labeller it uses ``config`` alone.
"""
