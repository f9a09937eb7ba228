"""What an operation is: its slots, how they are filled, its documentation and its samples."""
