"""From facts to labels, pure: a module for each family of labels, which ``labels`` puts together. ``devicetree`` and
``reactor`` have the labels of other projects. They use ``facts`` and ``names``.
"""
