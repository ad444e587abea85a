"""HTTP/1.1 and HTTP/2 over TLS, bounded whoever connects: begin with ``serving``; ``accepting`` says who is let in. It
knows nothing of what it serves; of the assigner it uses the settings, and ``issuing`` to see when a certificate ends.
"""
