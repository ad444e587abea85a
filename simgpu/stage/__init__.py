"""What demo, measurements and tests set up on a simulated machine, and judge by: the node's manager and programs on it
(``stage``), and what each program executed (``executed``). It may use what the command line uses, and no part of it."""
