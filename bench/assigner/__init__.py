"""What the assigner costs a pod in processor time, between stand-ins for the API server and kube-scheduler: begin with
``cost``."""
