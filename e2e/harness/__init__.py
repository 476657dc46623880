"""A real Kubernetes control plane on loopback ports, and what the scenarios say about it."""
