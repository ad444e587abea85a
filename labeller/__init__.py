"""A node's labels, by what accelerates it: begin with ``daemon``, which keeps them, and ``labels``, all that it gets.

``collect`` asks the ``sources/`` for ``facts``, ``derive/`` makes labels of these, pure, ``names`` spells each of them,
``ownership`` decides which are ours, ``node_output`` and ``feature_output`` write. ``usage/`` publishes how busy the
devices are. It uses ``edgeshare`` and no other part.
"""
