"""What an allocation's share gives it: begin with ``standing``, what the rules know of one; ``limit`` holds who has a
limit to it, ``latency`` says who of the latency class goes first, and ``trust`` whether what its pages say is believed.
They use ``settings``.
"""
