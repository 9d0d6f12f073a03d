"""REPORT: pages, pictures and tables."""
