"""Tracers, traces and primitives: how a call finds its transform, what an operation is, and programs as graphs."""
