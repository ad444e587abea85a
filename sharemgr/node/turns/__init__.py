"""Who has the device, and until when: pure functions of state, event and time, compiled by mypyc, the folder whole.

Begin with ``policy``, the rule of exclusive turns and its bound, and ``arbiter``, the state machine of one device.
``share/`` is what an allocation's limit and its class do.
``slices`` takes turns; ``beside`` lets several in beside each other where one of them leaves gaps. It uses the contract
(``edgeshare.contract.units``, ``edgeshare.contract.errors``) and nothing else.
"""
