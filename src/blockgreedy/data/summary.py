"""What a dataset is like: sizes, values, labels, empty and repeated rows and columns, density."""
