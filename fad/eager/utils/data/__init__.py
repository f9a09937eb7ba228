"""``torch.utils.data``: data sets, samplers, and loaders that give out batches. Everything happens in this process."""

from fad.eager.unsupported import explain_missing
from fad.eager.utils.data import dataloader, dataset, sampler
from fad.eager.utils.data.dataloader import DataLoader, default_collate
from fad.eager.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from fad.eager.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler",
    "Sampler", "SequentialSampler", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler",
    "dataloader", "dataset", "default_collate", "get_worker_info", "random_split", "sampler",
]  # fmt: skip


def get_worker_info() -> None:
    """Return None, as PyTorch does in the main process: there are no others here."""


__getattr__ = explain_missing("torch.utils.data", globals())
