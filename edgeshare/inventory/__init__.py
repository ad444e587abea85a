"""Which devices a machine has: begin with ``sources``, all inventories as one and those that are declared by hand, and
``interface``, what each of them offers.

``nvml/`` asks NVIDIA's library; ``jetson`` and ``edgetpu`` read the files of a ``tree``. Pure modules
make devices of what they find: ``gpus``, ``boards``, ``corals`` and ``declarations``; ``contested`` says which of them
another device plugin hands out, too. It uses the contract alone.
"""
