"""What is minimised, and what proves how well: the objective, its columns, losses, penalties and certificates."""
