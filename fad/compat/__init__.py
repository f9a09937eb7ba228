"""Doors for people who come from another library."""
