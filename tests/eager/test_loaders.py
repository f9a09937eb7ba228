"""Data sets, samplers and loaders, as training scripts for PyTorch use them."""

import io
import itertools
from collections import Counter

import numpy as np
import pytest

import fad.eager as torch
from fad.eager.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)


class Squares(Dataset):
    def __getitem__(self, k):
        return k * k

    def __len__(self):
        return 7


class Counted(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        assert get_worker_info() is None
        return iter(range(self.n))


class Backwards(Sampler):
    def __iter__(self):
        return iter(range(6, -1, -1))


def lists(loader):
    return [x.tolist() for x in loader]


def test_a_loader_draws_without_end_from_a_sampler_with_replacement():
    # makemore's and minGPT's way to train for a number of steps and not of epochs
    sampler = RandomSampler(Squares(), replacement=True, num_samples=int(1e10))
    loader = DataLoader(Squares(), sampler=sampler, batch_size=4)
    assert len(loader) == 2_500_000_000
    first = [x for batch in itertools.islice(loader, 100) for x in batch.tolist()]
    assert len(first) == 400
    assert set(first) == {k * k for k in range(7)}


def test_a_random_sampler_gives_each_example_once_and_goes_on_in_another_order():
    torch.manual_seed(0)
    assert sorted(RandomSampler(Squares())) == list(range(7))
    longer = list(RandomSampler(Squares(), num_samples=17))
    assert sorted(longer[:7]) == sorted(longer[7:14]) == list(range(7))
    assert len(set(longer[14:])) == 3
    assert longer[:7] != longer[7:14]


@pytest.mark.parametrize(
    "make",
    [
        lambda g: RandomSampler(range(20), generator=g), lambda g: RandomSampler(range(20), True, generator=g),
        lambda g: SubsetRandomSampler(range(20), g), lambda g: WeightedRandomSampler(np.ones(20), 20, generator=g),
    ],
)  # fmt: skip
def test_a_sampler_draws_by_its_generator_or_by_the_seed(make):
    draw = lambda: list(make(torch.Generator().manual_seed(5)))
    assert draw() == draw()
    torch.manual_seed(3)
    first = list(make(None)), list(make(None))
    torch.manual_seed(3)
    assert first == (list(make(None)), list(make(None)))
    assert first[0] != first[1]


def test_a_weighted_sampler_draws_in_proportion_and_without_replacement_each_once():
    torch.manual_seed(0)
    counts = Counter(WeightedRandomSampler(torch.tensor([1.0, 0.0, 3.0]), 4000))
    assert set(counts) == {0, 2}
    np.testing.assert_allclose(counts[2] / 4000, 0.75, atol=0.03)
    assert sorted(WeightedRandomSampler([1.0, 0.0, 3.0], 2, replacement=False)) == [0, 2]


def test_samplers_of_the_users_own_give_the_order():
    assert lists(DataLoader(Squares(), 3, sampler=Backwards())) == [[36, 25, 16], [9, 4, 1], [0]]
    pairs = BatchSampler(SequentialSampler(Squares()), 2, drop_last=True)
    loader = DataLoader(Squares(), batch_sampler=pairs)
    assert len(loader) == 3
    assert lists(loader) == [[0, 1], [4, 9], [16, 25]]
    words = {"a": 1, "b": 2}
    assert lists(DataLoader(words, batch_sampler=[["b"], ["a", "b"]])) == [[2], [1, 2]]


@pytest.mark.parametrize("dataset", [Squares(), TensorDataset(torch.arange(7))])
def test_a_loader_has_the_sampler_that_it_uses(dataset):
    assert type(DataLoader(dataset).sampler) is SequentialSampler
    shuffled = DataLoader(dataset, 2, True)
    assert type(shuffled.sampler) is RandomSampler
    assert shuffled.batch_sampler.batch_size == 2


def test_what_is_gone_through_is_cut_into_batches_as_it_comes():
    assert lists(DataLoader(Counted(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(Counted(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Counted(3), batch_size=None)) == [0, 1, 2]
    assert lists(DataLoader(Counted(2) + Counted(3), batch_size=4)) == [[0, 1, 0, 1], [2]]
    endless = DataLoader(Counted(10**15), batch_size=3)
    assert next(iter(endless)).tolist() == [0, 1, 2]


def test_without_batches_examples_come_one_by_one_and_arrays_as_tensors():
    loader = DataLoader([np.ones(2), np.zeros(2)], batch_size=None)
    assert len(loader) == 2
    assert [(type(x), x.tolist()) for x in loader] == [(torch.Tensor, [1.0, 1.0]), (torch.Tensor, [0.0, 0.0])]


def test_the_sum_of_two_data_sets_is_one_behind_the_other():
    joined = Squares() + Squares()
    assert type(joined) is ConcatDataset
    assert (len(joined), joined[8]) == (14, 1)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: DataLoader(Counted(3), shuffle=True), "says the order itself"),
        (lambda: DataLoader(Squares(), 2, batch_sampler=[[0]]), "what is in each batch"),
        (lambda: DataLoader(Squares(), None, drop_last=True), "no last one"),
        (lambda: DataLoader(Squares(), 0), "at least 1"),
        (lambda: BatchSampler([0], 0, False), "1 or more, not 0"),
        (lambda: RandomSampler([0], num_samples=-1), "0 or more"),
        (lambda: list(RandomSampler([])) + list(RandomSampler([], True, 3)), "the data set is empty"),
        (lambda: WeightedRandomSampler([1.0, -1.0], 1), "none of them negative"),
        (lambda: WeightedRandomSampler([1.0, 0.0], 2, False), "2 examples cannot be drawn from 1"),
    ],
)
def test_what_contradicts_itself_is_an_error_in_words(make, what):
    with pytest.raises(ValueError, match=what):
        make()


def test_a_length_that_nobody_knows_is_pythons_error():
    with pytest.raises(TypeError, match=r"has no len\(\)"):
        len(DataLoader(Counted(3)))


def test_a_state_is_written_to_and_read_from_an_open_file(tmp_path):
    model = torch.nn.Linear(2, 3)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    assert torch.equal(torch.load(buffer)["weight"], model.weight)
    with open(tmp_path / "array", "wb") as f:
        torch.save(np.arange(3.0), f)
    with open(tmp_path / "array", "rb") as f:
        assert torch.load(f).tolist() == [0.0, 1.0, 2.0]
    assert torch.load(tmp_path / "array").tolist() == [0.0, 1.0, 2.0]
