"""Transforms of functions: derivatives forward and backward, batches, Taylor series; each is a trace with its rules."""
