"""Rewrites into the operations that native code has kernels for: ``Graph -> Graph``."""
