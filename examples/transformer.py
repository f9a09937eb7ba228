"""
A transformer on Shakespeare's sonnets
======================================

The text (public domain) is data/sonnets.txt, which lies beside this program in the repository. The unigram entropy is
the best that a model without context can do.

Run it as ``python examples/transformer.py --steps 500``.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fad
from fad import data, nn, optim
from fad.nn import functional as F

TEXT = (Path(globals().get("__file__", "transformer.py")).parent / "data" / "sonnets.txt").read_text()
LETTERS = sorted(set(TEXT))
CODES = np.array([LETTERS.index(c) for c in TEXT])


def unigram_entropy(codes):
    p = np.bincount(codes) / len(codes)
    p = p[p > 0]
    return -np.sum(p * np.log(p))


class Block(nn.Module):
    def __init__(self, width, heads):
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x), is_causal=True))
        return x + self.drop(self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    def __init__(self, letters, context, width=64, heads=4, depth=2):
        self.context = context
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Embedding(context, width)
        self.blocks = [Block(width, heads) for _ in range(depth)]
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)
        self.letters.weight *= 0.1
        self.places.weight *= 0.1

    def forward(self, codes):
        x = self.letters(codes) + self.places(np.arange(codes.shape[-1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss(model, codes):
    """The mean of minus the logarithmic probability of each next letter."""
    return F.cross_entropy(model(codes[:, :-1]), codes[:, 1:], axis=-1)


def windows(codes, starts, length):
    return codes[starts[:, None] + np.arange(length + 1)]


def train(steps=500, context=48, width=64, batch=16, seed=0):
    with nn.seed(seed), fad.config.use(default_dtype="float32"):
        model = Transformer(len(LETTERS), context, width)
    opt = optim.AdamW(model, lr=optim.schedules.warmup(20, optim.schedules.cosine(3e-3, steps)), weight_decay=0.01)
    cut = int(0.9 * len(CODES))
    training, held_out = CODES[:cut], CODES[cut:]
    key, history = fad.random.key(seed), optim.History()
    bar = data.progress(range(steps), "training", lines=10)
    for step in bar:
        starts = fad.random.randint(fad.random.fold_in(key, step), (batch,), 0, len(training) - context)
        value, grads = fad.value_and_grad(loss)(model, windows(training, starts, context))
        optim.check_finite(value, step)
        grads, _ = optim.clip_by_global_norm(grads, 1.0)
        opt.step(grads)
        history.add(loss=value)
        bar.show(loss=value)
    test = windows(held_out, np.arange(0, len(held_out) - context, context), context)
    return model, history, float(loss(model.eval(), test))


def write(model, start, length, key, temperature=0.7):
    """Continue a text letter by letter."""
    codes = [LETTERS.index(c) for c in start]
    for i in range(length):
        logits = model(np.array(codes[-model.context :])[None])[0, -1]
        codes.append(int(fad.random.categorical(fad.random.fold_in(key, i), logits / temperature)))
    return "".join(LETTERS[c] for c in codes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--letters", type=int, default=300)
    parser.add_argument("--plot", help="where to write a picture of the loss")
    args = parser.parse_args()
    model, history, found = train(args.steps)
    print(f"unigram entropy          {unigram_entropy(CODES):.3f} nats a letter")
    print(f"loss at the end          {np.mean(history['loss'][-50:]):.3f}")
    print(f"loss on held-out sonnets {found:.3f}\n")
    print(write(model, "Shall I compare ", args.letters, fad.random.key(1)))
    if args.plot:
        history.plot(args.plot)
    plt.style.use("fad.style")
    _, ax = plt.subplots()
    ax.plot(history["loss"], linewidth=0.8, label="each batch")
    ax.axhline(unigram_entropy(CODES), color="C6", linestyle="--", label="knowing only how frequent letters are")
    ax.plot([len(history["loss"])], [found], "o", color="C1", label="sonnets never seen")
    ax.set(xlabel="step", ylabel="nats a letter", title="Learning to write like Shakespeare")
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main()
