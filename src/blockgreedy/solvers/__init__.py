"""SOLVE and TRACE: from a problem to a solution or a path of solutions, and the record of the run."""
