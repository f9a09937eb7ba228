"""Native code through LLVM: scalar expressions, loops around them, and the engine that compiles and keeps them."""
