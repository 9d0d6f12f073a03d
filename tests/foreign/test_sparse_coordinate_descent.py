"""scikit-learn's file of this name."""

from foreign.suite import borrowed

globals().update(borrowed("test_sparse_coordinate_descent"))
