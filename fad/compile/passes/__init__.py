"""Passes that make a graph smaller, whatever it is run by: ``Graph -> Graph``."""
