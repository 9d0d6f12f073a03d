"""What is kept of a fit: a model with its certificates, its quality and its file."""
