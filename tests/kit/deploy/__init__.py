"""What is installed from: the documents' code blocks and how each is held to its program (`blocks.py`, `programs.py`,
`manifests.py`), what the chart renders to (`objects.py`, `assigner.py`), and a repository that releases are made of
(`repository.py`).
"""
