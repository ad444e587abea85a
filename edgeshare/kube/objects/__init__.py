"""What objects of the API server say, where several parts read it: ``pod_containers`` what a pod's containers ask for,
``accelerator_node`` what a node's plugin tells of its devices. It uses the contract and ``edgeshare.kube.faults``.
"""
