"""Sums of products: matrix products, einsum, convolution, and the windows that pooling shares with it."""
