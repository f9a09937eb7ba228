"""Slices, masks and arrays whose length only a loop's body knows."""
