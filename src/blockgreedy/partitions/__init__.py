"""PARTITION: features in blocks, and what the theory says about them."""
