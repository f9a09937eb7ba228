"""A run of a user's function: what it sees in the place of NumPy, and what it changes outside of itself."""
