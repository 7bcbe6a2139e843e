"""Owns the page for operators: static files that use the public API and nothing else."""
