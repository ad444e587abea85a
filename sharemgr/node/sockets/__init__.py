"""What the manager asks of the kernel for its clients' sockets: an event loop with a short way (``loop``), who is at
the other end (``peers``), and how descriptors are closed that may block (``closer``). It uses nothing else of the
manager.
"""
