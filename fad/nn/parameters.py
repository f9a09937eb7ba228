"""What the parameters of layers and functions are, said once for all of them: `help` reads it from here.

An entry is ``name : type`` with its text below; ``Layer.name`` is for one layer, or for those that inherit from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad.core.primitives.docstring_sections import complete

LAYERS = """
in_features, out_features, in1_features, in2_features : int
    Sizes of the last axis of input and output: (..., in) becomes (..., out).
in_channels, out_channels : int
    Channels of input and output; the input has shape (batch, in_channels, *space), or lacks the batch axis.
kernel_size : int or tuple of int
    Size of the windows along each axis of space.
stride : int or tuple of int
    Distance of one window from the next; by default 1 for convolutions, `kernel_size` for poolings.
padding : int, tuple of int, "same" or "valid"
    How far the input is filled up at both ends of each axis of space.
Pad.padding : int or tuple of int
    How much is put before and after each axis of space: one number, or pairs from the last axis to the first.
output_padding : int or tuple of int
    How much longer the output is at one end, where several input sizes have one output size.
dilation : int or tuple of int
    Distance of the elements of a window.
groups : int
    Into how many groups the channels are divided, each with weights of its own.
padding_mode : "zeros", "reflect", "replicate" or "circular"
    What the input is filled up with.
bias : bool
    Whether there is a bias to learn.
key : random key or int, keyword only
    What the first parameters are drawn with, see `fad.random.key`; by default the next of `fad.nn.seed`.
dtype : dtype, keyword only
    Of the parameters; by default `fad.config.default_dtype`, float64.
ceil_mode : bool
    Whether a window that begins in the input counts even if it ends beyond.
count_include_pad : bool
    Whether the padding counts in the mean.
output_size : int or tuple of int
    How many windows along each axis of space.
Fold.output_size : tuple of int
    Height and width of the image.
num_features, num_channels : int
    Channels of the input, on axis 1.
num_groups : int
    Into how many groups the channels are divided; each is brought to mean 0 and variance 1.
normalized_shape : int or tuple of int
    Shape of the last axes, over which is averaged.
eps : float
    Added to the variance, against division by 0.
momentum : float
    Weight of the newest batch in the running mean and variance.
affine, elementwise_affine : bool
    Whether there are a scale, and a shift, to learn.
track_running_stats : bool
    Whether running means and variances are kept for evaluation.
size, LocalResponseNorm.size : int
    Over how many neighbouring channels is summed.
Upsample.size : int or tuple of int
    Height and width, or the length, of the result.
scale_factor : float or tuple of float
    Size of the result over that of the input; give this or `size`.
Upsample.mode : "nearest", "area", "linear", "bilinear", "bicubic" or "trilinear"
    How values between places are found.
align_corners : bool
    Whether the outermost places of input and result are the same.
alpha : float
    Scale of the part left of 0.
LocalResponseNorm.alpha, LocalResponseNorm.beta, LocalResponseNorm.k : float
    The formula is ``x / (k + alpha * mean(neighbours**2))**beta``.
approximate : "none" or "tanh"
    Whether the normal distribution function is approximated by a hyperbolic tangent.
axis : int
    Along which it is computed.
start, end : int
    First and last of the axes that become one.
sizes : tuple of int
    Lengths of the axes that an axis becomes.
lambd : float
    Half the width of the interval that becomes 0.
min_val, max_val : float
    Ends of the interval.
negative_slope : float
    Slope left of 0.
beta : float
    Sharpness: ``log(1 + exp(beta x)) / beta``.
threshold, value : float
    What does not exceed the threshold becomes the value.
ConstantPad.value : float
    What is put around.
num_parameters : int
    One slope for all channels (1), or one for each.
init_value : float
    The slope at first.
p : float
    Probability that an element, or a channel, is dropped.
num_embeddings, embedding_dim : int
    How many vectors there are, and their length.
padding_idx : int
    Index of a vector that stays as it is: its gradient is 0.
EmbeddingBag.mode : "mean", "sum" or "max"
    What is made of the vectors of a bag.
input_size, hidden_size : int
    Length of the vectors of the input and of the state.
num_layers : int
    How many layers stand on each other.
batch_first : bool
    Whether the input is (batch, time, features) and not (time, batch, features).
dropout : float
    Probability of dropping elements between layers, or attention weights, in training mode.
bidirectional : bool
    Whether a second network runs from the end of the sequence.
nonlinearity : "tanh" or "relu"
    Applied to the new state.
d_model, embed_dim : int
    Length of the vectors.
nhead, num_heads : int
    How many heads share it.
num_encoder_layers, num_decoder_layers : int
    How many layers encoder and decoder have.
dim_feedforward : int
    Length of the vectors between the two linear layers.
activation : "relu", "gelu" or callable
    Between the two linear layers.
layer_norm_eps : float, keyword only
    Added to variances.
norm_first : bool, keyword only
    Whether normalisation comes before attention and linear layers, not behind.
encoder_layer, decoder_layer : Module
    The layer that is copied, with its settings and parameters of their own.
norm : Module
    Applied at the end.
upscale_factor, downscale_factor : int
    How many pixels of an edge become one, or one becomes.
layers : Module or callable
    Called one after the other.
data : array_like
    The numbers.
requires_grad : bool
    Whether it is differentiated.
persistent : bool
    Whether ``state_dict()`` has it.
"""

ERRORS_OF_LAYERS = """
in_features, in1_features, input_size : ValueError
    The last axis of the input has another length.
in_channels : ValueError
    The input has another number of channels.
groups : ValueError
    They do not divide the channels.
padding_mode : ValueError
    There is no such mode.
num_features : ValueError
    The input has other axes, or another number of channels.
num_groups : ValueError
    They do not divide the channels.
normalized_shape : ValueError
    The input does not end with these axes.
kernel_size : ShapeMismatchError
    A window is larger than the padded input.
Conv.kernel_size, ConvTranspose.kernel_size : None
Fold.kernel_size : ValueError
    The input has not a column for each window.
Unfold.kernel_size : ValueError
    A window is larger than the padded input.
Pad.padding : ValueError
    There are not as many numbers as ends of axes.
p : ValueError
    It is no probability.
padding_idx : ValueError
    The table has no such row.
num_embeddings : IndexError
    The table has no row of an index.
EmbeddingBag.mode, Upsample.mode : ValueError
    There is no such mode.
nonlinearity, activation, approximate : ValueError
    There is no such function.
num_heads, nhead : ValueError
    They do not divide the length of the vectors.
size, scale_factor : ValueError
    Neither of both is given, or both are.
LocalResponseNorm.size : IndexError
    The input has no axis of channels.
GLU.axis : ValueError
    Its length is odd.
axis : IndexError
    The array has no such axis.
sizes : ValueError
    Their product is not the length of the axis.
num_parameters : ValueError
    The input has another number of channels.
upscale_factor : ValueError
    Its square does not divide the channels.
downscale_factor : ValueError
    It does not divide height and width.
layers : TypeError
    One of them is called, and cannot be.
Softmax2d : ValueError
    The input has not three axes, or four.
Module : NotImplementedError
    It is called, and defines no ``forward``.
"""

ERRORS_OF_FUNCTIONS = """
target : ShapeMismatchError
    Its shape is not that of `input`.
cosine_embedding_loss.target, margin_ranking_loss.target, hinge_embedding_loss.target : None
nll_loss.target, multi_margin_loss.target : LabelError
    There is no such class.
multilabel_soft_margin_loss.target : None
reduction : ValueError
    It is none of "mean", "sum" and "none".
axis : IndexError
    The array has no such axis.
cosine_similarity.axis : None
cosine_similarity.y, pairwise_distance.y, cosine_embedding_loss.y : ValueError
    Its shape cannot be broadcast against that of `x`.
glu.axis : ValueError
    Its length is odd.
num_groups, groups : ValueError
    They do not divide the channels.
batch_norm.mean, instance_norm.weight, layer_norm.weight, rms_norm.weight, prelu.weight : ValueError
    Its shape does not fit that of `x`.
bilinear.weight, linear.weight : ValueError
    It has not as many columns as the input.
embedding.indices, embedding_bag.indices, one_hot.labels : IndexError
    One lies outside of the table.
embedding_bag.mode : ValueError
    There is no such mode.
output_size : ValueError
    The array has fewer axes than windows have.
adaptive_avg_pool1d.output_size, adaptive_max_pool1d.output_size : ValueError
    It is negative.
kernel_size : ShapeMismatchError
    A window is larger than the padded input.
fold.output_size : ValueError
    The input has not a column for each window.
fold.kernel_size : None
unfold.kernel_size : ValueError
    A window is larger than the padded input.
size, scale_factor : ValueError
    Neither of both is given, or both are.
affine_grid.size : None
local_response_norm.size : IndexError
    The input has no axis of channels.
theta : ValueError
    Its shape is not (batch, 2, 3).
grid : ValueError
    `x` or it has another number of axes.
mode, padding_mode : ValueError
    There is no such mode.
upscale_factor : ValueError
    Its square does not divide the channels.
downscale_factor : ValueError
    It does not divide height and width.
pad.pad : ValueError
    The numbers do not come in pairs, or are too many.
dropout.p, dropout1d.p, dropout2d.p, dropout3d.p, alpha_dropout.p : ValueError
    It is no probability.
attention_weights.key, scaled_dot_product_attention.key : ValueError
    Its vectors have another length than those of `query`.
approximate : ValueError
    It is neither "none" nor "tanh".
"""

ERRORS_OF_INITIALISERS = """
key : TypeError
    It is no key.
fans.shape, xavier_uniform.shape, xavier_normal.shape, kaiming_uniform.shape, kaiming_normal.shape : ValueError
    It has fewer than two axes.
dirac.shape : ValueError
    It has fewer than two axes.
zeros.shape, ones.shape, constant.shape : ValueError
    A length is negative.
mode : ValueError
    It is neither "fan_in" nor "fan_out".
nonlinearity : ValueError
    No gain is known for it.
"""

FUNCTIONS = """
x, x1, x2, y, input : array
    Floating-point; see the sentence above for its axes.
target : array
    What the prediction `input` is compared with, of its shape.
cross_entropy.target, nll_loss.target, multi_margin_loss.target : array of int
    The right classes: the shape of `input` without its class axis; for `cross_entropy` probabilities are taken too.
cosine_embedding_loss.target, margin_ranking_loss.target, hinge_embedding_loss.target, soft_margin_loss.target : array
    1 or -1.
weight, pos_weight : array
    A weight for each class or element.
linear.weight, bilinear.weight, embedding.weight, embedding_bag.weight : array
    (out, in) of `linear`, (out, in1, in2) of `bilinear`, (count, length) of embeddings.
layer_norm.weight, batch_norm.weight, group_norm.weight, instance_norm.weight, rms_norm.weight : array
    The scale; by default 1.
prelu.weight : array
    The slope left of 0, one number or one for each channel.
bias : array
    What is added; by default nothing.
mean, var : array
    Of each channel; by default of the batch. `var` of a loss is the predicted variance.
reduction : "mean", "sum" or "none", keyword only
    What is made of the losses of the elements.
margin : float
    Distance that is wanted between what belongs together and what does not.
ignore_index : int, keyword only
    Class that does not count.
label_smoothing : float, keyword only
    Share of the target that is spread over all classes.
axis : int
    Along which it is computed.
axes : int
    Over how many last axes is averaged.
eps : float
    Against division by 0 or logarithms of 0.
full : bool, keyword only
    Whether constant terms are added.
log_input, log_target : bool, keyword only
    Whether logarithms are given.
delta, beta : float, keyword only
    Where the loss turns from a square into an absolute value.
softplus.beta : float
    Sharpness: ``log(1 + exp(beta x)) / beta``.
local_response_norm.alpha, local_response_norm.beta, local_response_norm.k : float
    The formula is ``x / (k + alpha * mean(neighbours**2))**beta``.
local_response_norm.size : int
    Over how many neighbouring channels is summed.
p : float
    Exponent of the norm.
dropout.p, dropout1d.p, dropout2d.p, dropout3d.p, alpha_dropout.p : float
    Probability of dropping.
anchor, positive, negative : array
    Rows that should be near (anchor, positive) and far (anchor, negative).
swap : bool
    Whether the distance of positive and negative counts where it is smaller.
distance_function : callable, keyword only
    Of two arrays of rows; by default the Euclidean distance.
log_probs, targets, input_lengths, target_lengths, blank, zero_infinity
    As of torch.nn.functional.ctc_loss.
num_groups, groups : int
    Into how many groups the channels are divided.
output_size : int or tuple of int
    How many windows along each axis of space; of `fold` height and width of the image.
kernel_size : int or tuple of int
    Size of the windows along each axis of space.
stride : int or tuple of int
    Distance of one window from the next; by default `kernel_size` for poolings.
padding : int or tuple of int
    How far the input is filled up at both ends of each axis of space.
dilation : int or tuple of int
    Distance of the elements of a window.
ceil_mode : bool
    Whether a window that begins in the input counts even if it ends beyond.
count_include_pad : bool
    Whether the padding counts in the mean.
size : int or tuple of int
    Shape of the result's axes of space; of `affine_grid` the whole shape.
scale_factor : float or tuple of float
    Size of the result over that of the input; give this or `size`.
mode : str
    How values between places are found: "nearest", "bilinear" and others; of bags "mean", "sum" or "max".
pad.mode : "constant", "reflect", "replicate" or "circular"
    What is put there.
align_corners : bool
    Whether the outermost places of input and result are the same.
pad : tuple of int
    Pairs (before, after) from the last axis to the first.
value, pad.value : float
    What is put there.
upscale_factor, downscale_factor : int
    How many pixels of an edge become one, or one becomes.
theta : array
    Affine maps of images, (batch, 2, 3).
grid : array
    Places in the coordinates -1 ... 1, x before y, of shape (batch, height, width, 2).
padding_mode : "zeros", "border" or "reflection"
    What lies beyond the image.
key : random key
    What is drawn with, see `fad.random.key`.
training : bool, keyword only
    Without it the function returns `x`.
attention_weights.query, scaled_dot_product_attention.query : array (..., L, d)
    Questions.
attention_weights.key, scaled_dot_product_attention.key : array (..., S, d)
    What they are compared with.
scaled_dot_product_attention.value : array (..., S, v)
    What is averaged.
attention_weights.scale, scaled_dot_product_attention.scale : float or None
    What scores are multiplied by in place of 1 / √d.
scaled_dot_product_attention.enable_gqa : bool
    Whether several heads of `query` share each head of `key` and `value`.
mask : array (..., L, S)
    Boolean (true: may attend), or added to the scores.
is_causal : bool, keyword only
    Whether position i attends to 0 ... i only.
dropout_p : float, keyword only
    Probability of dropping a weight.
dropout_key : random key, keyword only
    What is drawn with.
indices : array of int
    Rows of `weight`.
offsets : array of int
    Where the bags begin, if `indices` has one axis.
per_sample_weights : array
    A factor for each index.
padding_idx : int
    Row whose gradient is 0.
tau : float
    Temperature: towards 0 the result becomes one-hot.
hard : bool
    Whether the result is one-hot; the derivative is that of the soft one.
labels : array of int
    The classes, 0 ... num_classes - 1.
num_classes : int
    How many there are.
dtype : dtype
    Of the result.
alpha : float
    Scale of the part left of 0.
approximate : "none" or "tanh"
    Whether the normal distribution function is approximated by a hyperbolic tangent.
lambd : float
    Half the width of the interval that becomes 0.
min_val, max_val : float
    Ends of the interval.
negative_slope : float
    Slope left of 0.
threshold : float
    What does not exceed it becomes `value`.
"""

INITIALISERS = """
key : random key or int
    What is drawn with, see `fad.random.key`.
next_key.key : random key or int
    Returned as it is, as a key; by default the next of `seed`.
shape : int or tuple of int
    Of the result; weights are (out, in, *window).
low, high : float
    Ends of the interval; of `trunc_normal` in units of the result.
mean, std : float
    Of the normal distribution, before it is cut off.
value : float
    Of every element; of `seed` an int.
dtype : dtype
    Of the result; by default `fad.config.default_dtype`, float64.
gain : float
    Factor for what follows, see `calculate_gain`.
mode : "fan_in" or "fan_out"
    Whether values going forward, or derivatives going back, keep their variance.
groups : int
    Into how many groups the output channels are divided.
nonlinearity : str
    Its name in `fad.nn.functional`.
param : float
    The slope of "leaky_relu".
"""

_LOSSES = "loss similarity distance kl_div cross_entropy"


def _result(name: str, thing: Any) -> str:
    if any(word in name for word in _LOSSES.split()):
        return "array\n    One number, or with ``reduction=\"none\"`` one per element or row."
    return "array\n    Of the dtype of `x`; elementwise functions keep the shape."


def _cite(module: str, without: str) -> Callable[[str], str]:
    """Return a function that names the page of PyTorch's function or class of a name."""

    def cite(name: str) -> str:
        path = f"{module}.{name}"
        return "" if name in without.split() else f"{path}, https://docs.pytorch.org/docs/stable/generated/{path}.html"

    return cite


def document_layers(names: dict) -> None:
    """Add sections on parameters to the docstrings of layers."""
    cite = _cite("torch.nn", without="LabelError StateDictError")
    complete(names, LAYERS, lambda name, thing: "", ERRORS_OF_LAYERS, cite)


def document_functions(names: dict) -> None:
    """Add sections on parameters and results to the docstrings of `fad.nn.functional`."""
    own = "avg_pool conv conv_transpose max_pool attention_weights log_sigmoid"
    complete(names, FUNCTIONS, _result, ERRORS_OF_FUNCTIONS, _cite("torch.nn.functional", without=own))


def document_initialisers(names: dict) -> None:
    """Add sections on parameters and results to the docstrings of `fad.nn.init`."""
    results = {"fans": "(int, int)\n    fan_in and fan_out.", "calculate_gain": "float", "next_key": "random key",
               "seed": "context manager"}  # fmt: skip
    of_array = "array\n    Of that shape and dtype."
    complete(names, INITIALISERS, lambda name, thing: results.get(name, of_array), ERRORS_OF_INITIALISERS)
