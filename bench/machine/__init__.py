"""What the machine itself takes, with no edgeshare in it: begin with ``floors``."""
