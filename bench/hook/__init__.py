"""What the hook adds to a program's calls, timed by the C programs beside: begin with ``launch``."""
