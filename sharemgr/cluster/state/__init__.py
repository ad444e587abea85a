"""Who has what: nodes, their accelerators, pods, and the ledger of it all. Pure: begin with ``books``, which takes in
what the API server tells, and ``ledger``; which devices may take a pod is decided in ``eligibility``. It uses the
contract and nothing else of the assigner.
"""
