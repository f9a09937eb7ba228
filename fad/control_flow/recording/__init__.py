"""What a loop's body is rewritten to before it becomes an operation."""
