"""A real Kubernetes of one node, for tests: its programs, its images, and the processes it is made of."""
