"""Operations on tensors, in PyTorch's names and signatures."""
