"""The cluster part as a process (`replicas.py`), with connections to it (`connection.py`, `http2_client.py`) and a
cluster around it whose status is asked (`world.py`); what its parts are tested with (`binding.py`, `books.py`,
`deciding.py`, `lending.py`, `plain_account.py`, `pod_json.py`, `profiled.py`).
"""
