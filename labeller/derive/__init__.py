"""From facts to labels, pure: a module for each family of labels, which ``labels`` puts together. ``reactor`` has the
labels of another project, ``boards`` those of another one beside ours. They use ``facts`` and ``names``.
"""
