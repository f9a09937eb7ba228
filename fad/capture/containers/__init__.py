"""Python's lists and dictionaries that the steps of a loop fill, grow or change, as arrays of its state."""
