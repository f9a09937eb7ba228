"""Lookups, writes, masks and windows as the slices and loops that have kernels."""
