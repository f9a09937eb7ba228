"""Python's own functions of numbers on traced ones: `math`, `cmath`, `statistics`, ``float(x)``."""
