"""What is said of methods of PyTorch's tensors that those of the eager API do not have."""

from __future__ import annotations

from fad.eager.tensor import Tensor
from fad.eager.unsupported import GPU, INSTEAD, SPARSE


def _refusal(name: str, why: str) -> property:
    def refuse(self):
        raise AttributeError(f"a tensor has no {name!r} here: {why}")

    return property(refuse)


for _name, _why in {
    "cuda": GPU, "mps": GPU, "xpu": GPU, "to_sparse": SPARSE, "to_dense": SPARSE, "to_sparse_csr": SPARSE,
    "coalesce": SPARSE, "bfloat16": INSTEAD["bfloat16"], "as_strided": INSTEAD["as_strided"],
    "storage": "use x.numpy(), which shares its memory", "untyped_storage": "use x.numpy(), which shares its memory",
    "resize_": "use x.reshape, or make a new tensor", "set_": "use x.copy_", "map_": "use torch.where or x.copy_",
    "apply_": "use functions of whole tensors", "symeig": "use torch.linalg.eigh", "stft": INSTEAD["stft"],
    "_version": "a change of what a backward pass needs is found by its value",
    "register_post_accumulate_grad_hook": "use x.register_hook, which is called before the gradient is added",
}.items():  # fmt: skip
    setattr(Tensor, _name, _refusal(_name, _why))
