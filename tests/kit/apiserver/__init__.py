"""API servers: a real one (`api_server.py`), one that does as a test says (`scripted_api_server.py`, `serving.py`), one
that answers what a test has ready (`answering_server.py`, `watches.py`); and the certificates that servers and clients
show (`certificates.py`).
"""
