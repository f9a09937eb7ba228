"""Every training script in examples/, at a small size."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the examples read data that come with scikit-learn")

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits_learn_in_a_few_epochs():
    _, accuracy = load("digits").train(epochs=16)
    assert accuracy > 0.93


def test_the_cnn_learns_in_two_epochs():
    _, history, accuracy = load("cnn").train(epochs=2, width=8)
    assert accuracy > 0.8
    assert history.last("loss") < history["loss"][0]


def test_the_transformer_falls_below_the_unigram_entropy():
    example = load("transformer")
    model, _, held_out = example.train(steps=60, context=32, width=32)
    assert held_out < example.unigram_entropy(example.CODES)
    text = example.write(model, "Shall I ", 5, example.fad.random.key(0))
    assert text.startswith("Shall I ")
    assert len(text) == 13


def test_newton_converges_quadratically_and_classifies():
    example = load("newton")
    training, held_out = example.load()
    w, norms = example.newton(np.zeros(31), *training)
    assert norms[-1] < 1e-9
    assert len(norms) <= 12
    assert example.accuracy(w, *held_out) > 0.94


def test_newton_with_a_sparse_hessian_takes_noise_off_a_photograph():
    example = load("denoising")
    clean, noisy = example.load(48, 64)
    image, norms = example.denoise(noisy)
    assert norms[-1] < 1e-6
    assert example.error(image, clean) < 0.87 * example.error(noisy, clean)


def test_the_gaussian_process_raises_its_likelihood():
    _, before, after, error = load("gaussian_process").train(steps=10, n=60)
    assert after < before - 0.02
    assert error < 0.8


def test_the_neural_ode_learns():
    _, history = load("neural_ode").train(steps=30)
    assert history.last("loss") < 0.6 * history["loss"][0]


def test_the_factors_tell_hidden_pixels():
    _, error, baseline = load("matrix_factorisation").train(steps=100, rank=8, rows=300)
    assert error < 0.9 * baseline


def test_the_chains_agree_and_surround_the_mode():
    example = load("hmc")
    found, rate = example.run(samples=80, chains=16)
    assert rate > 0.7
    assert np.all(example.r_hat(found) < 1.2)
    x, y = example.load()
    density = example.make_density(x, y)
    mean = found.mean(axis=(0, 1))
    assert density(mean) > max(density(w) for w in found[-1])  # the mean of a near-normal posterior is near its mode


def test_maml_learns_to_learn():
    example = load("maml")
    _, learnt, fresh = example.train(steps=40, tasks=4)
    assert learnt > fresh + 0.05


def test_the_recipes_do_what_they_say():
    example = load("recipes")
    model, (x, y) = example.network(), (example.IMAGES[:32], example.LABELS[:32])
    whole = example.fad.grad(example.loss)(model, x, y)
    parts = example.gradient_accumulation(model, x, y)
    norms = example.per_example_gradients(model, x, y)
    assert example.fad.tree.norm(example.fad.tree.sub(whole, parts)) < 1e-6
    assert norms.shape == (32,)
    assert example.clipping(epochs=2)[0] > 0.6
    _, averaged = example.averaged_weights(epochs=2)
    assert averaged > 0.8
    accuracy, dtypes = example.mixed_precision(epochs=2)
    assert accuracy > 0.8
    assert dtypes == {np.dtype("float64")}
    accuracy, unchanged = example.fine_tuning(epochs=2)
    assert accuracy > 0.3
    assert unchanged


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_every_example_is_short_and_is_tested(path):
    text = path.read_text(encoding="utf-8")
    besides_the_picture = re.sub(r"\ndef draw\(.*?(?=\ndef )", "", text, flags=re.DOTALL)
    assert len(besides_the_picture.splitlines()) < (80 if path.stem == "digits" else 150)
    assert f'load("{path.stem}")' in Path(__file__).read_text(encoding="utf-8")


def test_an_example_runs_as_a_script(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["digits.py", "--epochs", "1"])
    load("digits").main()
    assert "held-out accuracy" in capsys.readouterr().out
