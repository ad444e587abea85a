"""What Kubernetes lets its objects be called (apimachinery, util/validation)."""

LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""A DNS label (RFC 1123), as a regular expression: so a namespace, a Service and a container are called."""

NAME_MAX = 253
"""Characters of any name; most are DNS subdomains, labels with dots between them."""
