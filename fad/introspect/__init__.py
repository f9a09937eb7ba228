"""What CPython knows of the program that is running: frames, source lines, code objects."""
