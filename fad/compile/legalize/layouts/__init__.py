"""Arrays in another layout or in pieces: long rows for vectors, strips that stay in the cache, single numbers."""
