"""The cluster's API server: begin with ``kube``, which asks it in the calling thread. From an event loop ``threaded``
asks, with a thread for each call, and ``calls``, with none; ``list_reader`` takes in what they list, and ``following``
keeps up with what changes, by either; ``client_library`` and ``calls`` are the importers of the Kubernetes client.
``calls`` asks over ``connections``, or where a proxy is between as ``proxied`` does; ``answer`` is what comes.
``json_parts`` reads of an object what is looked at alone, ``faults`` says what is wrong with one, ``objects/`` what
those say that several parts read, and ``environment`` whether this is a pod, and on which node. It uses the contract
and ``edgeshare.detached``.
"""
