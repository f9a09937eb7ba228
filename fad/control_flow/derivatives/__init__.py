"""Derivatives of loops and branches: what runs forward and what it keeps, and what runs backward."""
