"""HTTP/1.1 and HTTP/2 over TLS, bounded whoever connects: begin with ``serving``. It knows nothing of what it serves;
of the
assigner it uses the settings alone.
"""
