"""Loops and branches as operations: their bodies as graphs, with rules for every transform."""
