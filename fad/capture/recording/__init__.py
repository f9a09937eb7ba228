"""The capture of a loop: a look at what a step does, the recording of one, and the operation that is made of it."""
