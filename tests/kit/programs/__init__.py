"""Programs that tests need and do not have yet: compiled, built, fetched, installed, and kept in the cache folder.

Begin with `cache.py`. `compiled.py` is of this tree's C, `binaries.py` of the Go modules that `modules/` pins, as
`kinds.py` is of objects that these define; `packages.py` of the distribution, `archive.py` writes images.
"""
