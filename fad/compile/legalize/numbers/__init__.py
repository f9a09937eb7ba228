"""Numbers that native code has no type for, and choices made in another type than they are wanted in."""
