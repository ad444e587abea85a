"""What `make release` does: one folder in dist/ with all of a version, made of a commit, whole or not at all.

Begin with `__main__.py`. `version.py` and `commit.py` say what is released, and refuse what cannot be; `source.py` is
the commit's tree with the version in it, of which all else is made; `folder.py` is where it goes.
"""
