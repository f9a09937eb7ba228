"""Convolution on a device: the host's numbers, few launches, and little memory beside the operands."""

import itertools

import numpy as np
import pytest
import standin
from standin import DeviceArray, counted, held, no_copies

import fad
from fad import backends
from fad.ops.products import device_conv
from fad.ops.products.conv import conv, conv_input_p, conv_kernel_p, conv_p
from fad.ops.products.windows import output_size

backends.register(standin)
RNG = np.random.default_rng(0)
SETTINGS = [
    (spatial, kernel, {"stride": (s,) * k, "padding": (pad,) * k, "dilation": (d,) * k, "groups": groups})
    for spatial, kernel, s, pad, d, groups in itertools.product(
        [(6,), (7, 5), (4, 5, 3)], [1, 3], [1, 2, 3], [(2, 0), (0, 1)], [1, 2], [1, 2]
    )
    for k in [len(spatial)]
]


@pytest.mark.parametrize("smallest", [1 << 22, 1], ids=["whole", "in pieces"])
def test_a_convolution_and_its_transposes_are_the_hosts(smallest, monkeypatch):
    monkeypatch.setattr(device_conv, "SMALLEST", smallest)
    for spatial, kernel, settings in SETTINGS:
        kernel = (kernel,) * len(spatial)
        out = output_size(spatial, kernel, settings["stride"], settings["padding"], settings["dilation"])
        if min(out) < 1:
            continue
        x, c = RNG.standard_normal((3, 4, *spatial)), RNG.standard_normal((3, 6, *out))
        w = RNG.standard_normal((6, 4 // settings["groups"], *kernel))
        for prim, operands, more in [
            (conv_p, (x, w), {}),
            (conv_input_p, (c, w), {"size": spatial}),
            (conv_kernel_p, (x, c), {"kernel": kernel}),
        ]:
            wanted = prim(*operands, **settings, **more)
            with no_copies():
                found = prim(*map(DeviceArray, operands), **settings, **more)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found._a, wanted, atol=1e-12, err_msg=f"{prim} {spatial} {kernel} {settings}")


def gradient(x, w):
    return fad.grad(lambda x, w: np.sum(conv(x, w, padding=1) ** 2), argnums=(0, 1))(x, w)


def test_the_launches_of_a_gradient_do_not_grow_with_the_kernel():
    asked = []
    for size in (3, 7):
        x, w = DeviceArray(np.ones((2, 3, 9, 9))), DeviceArray(np.ones((4, 3, size, size)))
        with counted() as count:
            gradient(x, w)
        asked.append(count())
    assert asked[0] == asked[1]


@pytest.mark.parametrize("groups", [1, 8])
def test_what_stands_between_has_no_more_bytes_than_operands_and_result(groups, monkeypatch):
    monkeypatch.setattr(device_conv, "SMALLEST", 1)
    x, c = (DeviceArray(np.ones((16, 8, 20, 20))) for _ in range(2))
    w = DeviceArray(np.ones((8, 8 // groups, 3, 3)))
    settings = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": groups}
    for prim, operands, more in [
        (conv_p, (x, w), {}), (conv_input_p, (c, w), {"size": (20, 20)}), (conv_kernel_p, (x, c), {"kernel": (3, 3)}),
    ]:  # fmt: skip
        with held() as most:
            y = prim(*operands, **settings, **more)
        there = sum(a.nbytes for a in {id(a): a for a in (*operands, y)}.values())
        widened, turned = operands[0].nbytes * 22 * 22 / 400, operands[-1].nbytes
        assert most() <= there + x.nbytes + c.nbytes + widened + turned


def test_a_mixture_of_host_and_device_is_refused():
    x, w = np.ones((1, 1, 3)), np.ones((1, 1, 2))
    for operands in ((DeviceArray(x), w), (x, DeviceArray(w))):
        with pytest.raises(fad.errors.BackendMismatchError, match="standin and numpy"):
            fad.grad(lambda x, w: np.sum(conv(x, w)))(*operands)
