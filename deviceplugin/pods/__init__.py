"""The pods of this node that ask for units: what each asks (``pod_spec``), who may be asking now (``pending_pods``,
``applicants``), as the API server (``pod_watch``) and the kubelet (``podresources``) tell it. It uses ``units``.
"""
