"""The assigner: which node, and which GPU of it, each sharePOD of the cluster gets."""
