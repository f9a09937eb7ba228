"""What is said of a name of PyTorch's that the eager API does not have: what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

GPU = "tensors live in host memory here; for a GPU write functions of CuPy's arrays and use fad.grad"
SPARSE = "there are no sparse tensors here: fad.scipy.sparse has products and solutions for SciPy's matrices"
_QUANTIZED = "there are no quantised tensors here"
PRECISION = (
    "computations in host memory keep their precision: leave autocast out, or give enabled=False, and convert with "
    "model.half() or x.to(torch.float16)"
)

INSTEAD = {
    "Adafactor": "use Adam or AdamW", "Muon": "use SGD with momentum, or AdamW", "SparseAdam": "use Adam",
    "AdaptiveLogSoftmaxWithLoss": "use nn.Linear and nn.CrossEntropyLoss",
    "DataParallel": "everything runs in this process: use the module itself",
    "FractionalMaxPool2d": "use nn.MaxPool2d or nn.AdaptiveMaxPool2d",
    "MaxUnpool1d": "use nn.MaxUnpool2d with an axis of one", "MaxUnpool3d": "use x.scatter(...) with the indices",
    "RReLU": "use nn.LeakyReLU, whose slope does not vary",
    "DistributedSampler": "use fad.data.batches(..., rank=comm.rank, size=comm.size)",
    "SyncBatchNorm": "use nn.BatchNorm2d",
    "as_strided": "use x.reshape, x.unfold or indexing",
    "bfloat16": "NumPy has no bfloat16: use torch.float32 or torch.float16",
    "channels_last": "memory is laid out as NumPy has it: leave it out", "cuda": GPU,
    "distributed": "everything runs in this process: fad.data and fad.jit use the cores of this machine",
    "eig": "use torch.linalg.eig", "forward_ad": "use torch.func.jvp, or fad.jvp on functions of arrays",
    "export": "use fad.make_graph or fad.source on a function of arrays",
    "get_rng_state": "use torch.manual_seed to begin random numbers again",
    "gru_cell": "use nn.GRUCell", "hub": "load weights with torch.load and model.load_state_dict",
    "istft": "use fad.scipy.signal.istft on arrays",
    "jit": "use fad.jit on a function of arrays",
    "lobpcg": "use torch.linalg.eigh", "lstm_cell": "use nn.LSTMCell", "lu": "use fad.scipy.linalg.lu on arrays",
    "mps": GPU, "multi_head_attention_forward": "use nn.MultiheadAttention, or F.scaled_dot_product_attention",
    "multiprocessing": "everything runs in this process", "onnx": "use fad.make_graph on a function of arrays",
    "quantize_per_tensor": _QUANTIZED, "set_default_device": GPU,
    "set_num_threads": "set FAD_NUM_THREADS before the program starts",
    "set_printoptions": "print x.numpy(), by np.printoptions",
    "use_deterministic_algorithms": "results repeat already: leave it out",
    "set_default_tensor_type": "use torch.set_default_dtype", "set_rng_state": "use torch.manual_seed",
    "saved_tensors_hooks": "use torch.utils.checkpoint.checkpoint to keep less, fad.saved to see what is kept",
    "save_on_cpu": "tensors are in host memory already: leave it out", "sparse": SPARSE,
    "sparse_coo_tensor": SPARSE, "stft": "use fad.scipy.signal.stft on arrays",
    "swa_utils": "use copy.deepcopy(model), and p.lerp_(q, 0.1) under torch.no_grad() for each two parameters",
    "symeig": "use torch.linalg.eigh", "to_dense": SPARSE, "to_sparse": SPARSE,
    "tensorboard": "use the package tensorboardX, which takes numbers (loss.item())",
    "upsample": "use F.interpolate", "xpu": GPU,
}  # fmt: skip


class MissingDtype:
    """A dtype that NumPy does not have: programs list and compare it, and an error says more where one is made of it.

    >>> import fad.eager as torch
    >>> torch.ones(1).dtype in (torch.float16, torch.bfloat16)
    False
    """

    def __init__(self, name: str):
        self.name = name

    @property
    def dtype(self) -> Any:  # what NumPy asks for
        raise TypeError(INSTEAD[self.name])

    def __repr__(self) -> str:
        return f"torch.{self.name}"


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
