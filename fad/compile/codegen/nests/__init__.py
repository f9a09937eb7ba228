"""Loop nests as one function of machine code each: numbers in registers, arrays in memory and changed in place."""
