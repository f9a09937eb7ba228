"""Mathematical functions as LLVM's instructions."""
