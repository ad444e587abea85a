"""What an allocation's share gives it: begin with ``standing``, what the rules know of one; ``limit`` holds who has a
limit to it, and ``latency`` says who of the latency class goes first. They use ``settings``.
"""
