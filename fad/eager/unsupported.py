"""What is said of a name of PyTorch's that the eager API does not have: what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from fad.eager.tensor import Tensor

_GPU = "tensors live in host memory here; for a GPU write functions of CuPy's arrays and use fad.grad"
_SPARSE = "there are no sparse tensors here: fad.scipy.sparse has products and solutions for SciPy's matrices"
_QUANTIZED = "there are no quantised tensors here"
_PRECISION = "there is no automatic choice of precision here: convert with model.double() or x.to(torch.float32)"

INSTEAD = {
    "Adafactor": "use Adam or AdamW", "Muon": "use SGD with momentum, or AdamW", "SparseAdam": "use Adam",
    "AdaptiveLogSoftmaxWithLoss": "use nn.Linear and nn.CrossEntropyLoss",
    "DataParallel": "everything runs in this process: use the module itself", "GradScaler": _PRECISION,
    "FractionalMaxPool2d": "use nn.MaxPool2d or nn.AdaptiveMaxPool2d",
    "MaxUnpool1d": "use nn.MaxUnpool2d with an axis of one", "MaxUnpool3d": "use x.scatter(...) with the indices",
    "RReLU": "use nn.LeakyReLU, whose slope does not vary",
    "DistributedSampler": "use fad.data.batches(..., rank=comm.rank, size=comm.size)",
    "SyncBatchNorm": "use nn.BatchNorm2d",
    "amp": _PRECISION, "as_strided": "use x.reshape, x.unfold or indexing", "autocast": _PRECISION,
    "bfloat16": "NumPy has no bfloat16: use torch.float32 or torch.float16",
    "channels_last": "memory is laid out as NumPy has it: leave it out", "cuda": _GPU,
    "distributed": "everything runs in this process: fad.data and fad.jit use the cores of this machine",
    "eig": "use torch.linalg.eig", "forward_ad": "use torch.func.jvp, or fad.jvp on functions of arrays",
    "export": "use fad.make_graph or fad.source on a function of arrays",
    "get_rng_state": "use torch.manual_seed to begin random numbers again",
    "gru_cell": "use nn.GRUCell", "hub": "load weights with torch.load and model.load_state_dict",
    "istft": "use fad.scipy.signal.istft on arrays",
    "jit": "use fad.jit on a function of arrays",
    "lobpcg": "use torch.linalg.eigh", "lstm_cell": "use nn.LSTMCell", "lu": "use fad.scipy.linalg.lu on arrays",
    "mps": _GPU, "multi_head_attention_forward": "use nn.MultiheadAttention, or F.scaled_dot_product_attention",
    "multiprocessing": "everything runs in this process", "onnx": "use fad.make_graph on a function of arrays",
    "quantize_per_tensor": _QUANTIZED, "set_default_device": _GPU,
    "set_num_threads": "set FAD_NUM_THREADS before the program starts",
    "set_printoptions": "print x.numpy(), by np.printoptions",
    "use_deterministic_algorithms": "results repeat already: leave it out",
    "set_default_tensor_type": "use torch.set_default_dtype", "set_rng_state": "use torch.manual_seed",
    "saved_tensors_hooks": "use torch.utils.checkpoint.checkpoint to keep less, fad.saved to see what is kept",
    "save_on_cpu": "tensors are in host memory already: leave it out", "sparse": _SPARSE,
    "sparse_coo_tensor": _SPARSE, "stft": "use fad.scipy.signal.stft on arrays",
    "swa_utils": "use copy.deepcopy(model), and p.lerp_(q, 0.1) under torch.no_grad() for each two parameters",
    "symeig": "use torch.linalg.eigh", "to_dense": _SPARSE, "to_sparse": _SPARSE,
    "tensorboard": "use the package tensorboardX, which takes numbers (loss.item())",
    "upsample": "use F.interpolate", "xpu": _GPU,
}  # fmt: skip


_WHERE = "docs/pytorch.md says what is there"


def explain_missing(place: str, here: dict[str, Any]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module, which says of a missing name what to write instead."""

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        close = difflib.get_close_matches(name, [n for n in here if not n.startswith("_")], 3, 0.75)
        hint = INSTEAD.get(name) or (f"did you mean {' or '.join(close)}?" if close else _WHERE)
        raise AttributeError(f"{place} has no {name!r} here: {hint}")

    return __getattr__


def _refusal(name: str, why: str) -> property:
    def refuse(self):
        raise AttributeError(f"a tensor has no {name!r} here: {why}")

    return property(refuse)


for _name, _why in {
    "cuda": _GPU, "mps": _GPU, "xpu": _GPU, "to_sparse": _SPARSE, "to_dense": _SPARSE, "to_sparse_csr": _SPARSE,
    "coalesce": _SPARSE, "bfloat16": INSTEAD["bfloat16"], "as_strided": INSTEAD["as_strided"],
    "storage": "use x.numpy(), which shares its memory", "untyped_storage": "use x.numpy(), which shares its memory",
    "resize_": "use x.reshape, or make a new tensor", "set_": "use x.copy_", "map_": "use torch.where or x.copy_",
    "apply_": "use functions of whole tensors", "symeig": "use torch.linalg.eigh", "stft": INSTEAD["stft"],
    "_version": "a change of what a backward pass needs is found by its value",
    "register_post_accumulate_grad_hook": "use x.register_hook, which is called before the gradient is added",
}.items():  # fmt: skip
    setattr(Tensor, _name, _refusal(_name, _why))
