"""Matrix products in the shapes and layouts that kernels are fast for."""
