"""A machine with EdgeTPUs, its manager, and programs that share them."""
