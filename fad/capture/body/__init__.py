"""What a body binds, reads and writes while it is recorded: names, attributes, elements, random numbers."""
