"""The kubelet device plugin of one node: offers hundredths of its devices, and says which units a container gets.

Begin with ``plugin``, which puts the parts together (``resource`` those of one kind of device), and
``admission/admission``. Below are ``kubelet`` (its calls, and being registered), ``cluster`` (the API server),
``admission`` (is what the kubelet chose right?), ``allocations`` (what live containers have), ``inject`` (how they get
it), ``devices``, ``health``, ``pods`` and ``units``. None imports what lies above. ``live_config`` is the configuration
of now, ``reloading`` what changes it.
"""
