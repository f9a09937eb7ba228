"""Arrays that a function makes for itself, behind handles: traced values may be written into them."""
