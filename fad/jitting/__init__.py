"""A jitted function: its signatures, the programs recorded for each, and what it may not depend on."""
