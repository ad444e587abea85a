"""The virtual machine, in C: `vt.h` says what it can do, `build.py` how it is built."""
