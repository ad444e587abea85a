"""The devices of this node, as last seen (``device_list``) and as shared (``selection``): begin with ``scan``, which
looks. ``other_plugins`` says which of them others hand out, too. Of the plugin's folders it uses ``health`` alone.
"""
