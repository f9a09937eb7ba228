"""From the source of a function to its converted form: its loops, branches and questions become calls of helpers."""
