"""The memory caps of an allocation: ``ledger`` is the account, pure; ``allowances`` keeps it in step with the words in
which its clients say what they do not use. It uses the pages that the manager shares with the hook, and nothing else of
the manager.
"""
