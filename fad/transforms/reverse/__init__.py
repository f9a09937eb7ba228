"""Reverse mode: the tape, the backward sweep, writes that it takes back, and infinite slopes."""
