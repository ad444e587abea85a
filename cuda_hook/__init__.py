"""The library that a workload preloads, in C, and its Python face.

``src/`` is the library (``src/README.md`` has its floors), ``core/`` its pure parts, of which cffi makes ``_core`` for
the manager and the tests: ``core/shared/`` is common to client and manager, ``core/times/`` says how long things take,
``core/tools/`` are locks, clocks and blocks. ``wire.h`` is what client and manager say to each other (begin there),
``wire`` the same in Python, ``gate`` the pages that they share. Of edgeshare it uses the contract alone.
"""
