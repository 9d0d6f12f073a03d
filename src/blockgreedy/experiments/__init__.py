"""The paper's experiments, rerun: which data, which runs, what came out, and the page that says so."""
