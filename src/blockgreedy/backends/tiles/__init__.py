"""The tile solver: one text for several processes, on one machine or a cluster."""
