"""API servers: a real one (`api_server.py`) and what its administrator asks it (`administrator.py`), one that does as a
test says (`scripted_api_server.py`, `serving.py`), one that answers what a test has ready (`answering_server.py`,
`watches.py`); the certificates that servers and clients show (`certificates.py`), and the file by which one is reached
(`kubeconfig.py`).
"""
