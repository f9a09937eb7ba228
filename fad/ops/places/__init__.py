"""Elements by their places: reading, taking, writing, and arrays that are made of others."""
