"""What the compiler works on: graphs, who reads their values, and an operation as a scalar expression."""
