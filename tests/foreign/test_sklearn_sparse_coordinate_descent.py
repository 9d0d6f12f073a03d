from foreign.suite import borrowed

globals().update(borrowed("test_sparse_coordinate_descent"))
