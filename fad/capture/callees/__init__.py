"""Calls of functions in code that is captured: which are converted in their turn, and what stands for the others."""
