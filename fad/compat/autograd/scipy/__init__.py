"""autograd.scipy: the parts of SciPy that autograd wraps."""
