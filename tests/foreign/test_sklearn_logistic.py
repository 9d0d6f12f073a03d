from foreign.suite import borrowed

globals().update(borrowed("test_logistic"))
