"""What goes into a transform: conversions, checks, and copies of what a program may change meanwhile."""
