"""Exclusive turns on one device: who has it (``slices``, where to begin), who competes for it, and when one must look
again (``field``), and who runs on though its drain was waited for no more (``overruns``). It uses the rest of
``turns``; only ``arbiter`` uses it, and ``ends`` is common to a node.
"""
