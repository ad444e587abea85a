"""The chart's assigner: the name of its objects, and the values that enable it."""

NAME = "edgeshare-assigner"
ENABLED = "assigner.enabled=true"
WITH_SECRET = (ENABLED, 'assigner.tls.secretName="assigner-tls"')
