"""Bodies of loops and branches: recorded, laid out, run step by step, and what is known of their integers."""
