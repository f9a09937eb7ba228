"""Tracers: how a call finds its transform, what a traced value answers itself, and what it refuses."""
