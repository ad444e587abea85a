"""The assigner: which node, and which GPU or EdgeTPU of it, each sharePOD of the cluster gets.

Begin with ``extender/assigner``, what is decided, pure, and ``service``, which puts the parts together. Below are
``state`` (who has what), ``placement`` (where a pod goes), ``extender`` (what kube-scheduler asks), ``server`` (HTTP),
``replica`` (who leads, and what it follows), ``status`` (who has what, told to those who may know); ``lending`` decides
what a pod may borrow, and ``issuing`` makes certificates. None of them imports what lies above."""
