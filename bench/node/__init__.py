"""What clients that share a simulated GPU get of it, and how fast it changes hands: begin with ``slices``."""
