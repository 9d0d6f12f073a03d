"""scikit-learn's own tests as guests."""
