"""Recorded programs as graphs, and what all that rewrites them has in common."""
