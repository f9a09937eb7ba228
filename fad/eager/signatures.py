"""What ``help`` shows of the functions that others make: signature and sentence, one line for each.

A line is ``name(signature): sentence``, behind a bar what differs from PyTorch's function of that name. Functions that
are written out have their own signature and docstring; all get a line that names PyTorch's.
"""

# ruff: noqa: E501  (a line of the table is one line)

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_LINES = """
abs(input, /): Return the absolute value of each element; its derivative at 0 is 0.
abs_(self): Replace each element by its absolute value, and return the tensor.
acos(input, /): Return the inverse cosine of each element.
acosh(input, /): Return the inverse hyperbolic cosine of each element.
addbmm(input, batch1, batch2, beta=1, alpha=1): Return ``beta * input + alpha * (batch1 @ batch2)``, summed over the batch.
addcdiv(input, tensor1, tensor2, value=1.0): Return ``input + value * tensor1 / tensor2``.
addcmul(input, tensor1, tensor2, value=1.0): Return ``input + value * tensor1 * tensor2``.
addmv(input, mat, vec, beta=1, alpha=1): Return ``beta * input + alpha * (mat @ vec)``.
addr(input, vec1, vec2, beta=1, alpha=1): Return ``beta * input + alpha * outer(vec1, vec2)``.
all(input, dim=None, keepdim=False): Return whether all elements, over `dim` or all axes, are not zero; it has no derivative.
amax(input, dim=None, keepdim=False): Return the maximum over `dim`, an axis or several; ties share the derivative.
amin(input, dim=None, keepdim=False): Return the minimum over `dim`, an axis or several; ties share the derivative.
angle(input, /): Return the angle of complex numbers.
any(input, dim=None, keepdim=False): Return whether any element, over `dim` or all axes, is not zero; it has no derivative.
argmax(input, dim=None, keepdim=False): Return the index of the maximum; it has no derivative.
argmin(input, dim=None, keepdim=False): Return the index of the minimum; it has no derivative.
argwhere(input, /): Return the indices of the elements that are not zero, one row for each; it has no derivative.
asin(input, /): Return the inverse sine of each element.
asinh(input, /): Return the inverse hyperbolic sine of each element.
atan(input, /): Return the inverse tangent of each element.
atan2(input, other, /): Return the angle of the points (other, input), element by element.
atanh(input, /): Return the inverse hyperbolic tangent of each element.
baddbmm(input, batch1, batch2, beta=1, alpha=1): Return ``beta * input + alpha * (batch1 @ batch2)`` for each of the batch.
bitwise_and(input, other): Return the bits that both whole numbers have; it has no derivative.
bitwise_left_shift(input, other): Return whole numbers with their bits shifted to the left; it has no derivative.
bitwise_or(input, other): Return the bits that one of two whole numbers has; it has no derivative.
bitwise_right_shift(input, other): Return whole numbers with their bits shifted to the right; it has no derivative.
bitwise_xor(input, other): Return the bits in which whole numbers differ; it has no derivative.
bmm(input, mat2): Return the matrix products of two batches, of 3 axes each.
ceil(input): Return each element rounded up; the derivative is zero.
ceil_(self): Round each element up in place, and return the tensor.
cdist(x1, x2, p=2.0): Return the distances of all rows of one tensor from all rows of the other, in the p-norm.
cholesky(input, /): Return the lower triangular L with ``L Lᴴ`` the matrix. | There is no `upper`.
clamp_(self, min=None, max=None): Limit each element to ``[min, max]`` in place, and return the tensor.
clamp_max(input, max): Return each element, at most `max`.
clamp_min(input, min): Return each element, at least `min`.
column_stack(tensors): Join tensors as columns of a matrix.
complex(real, imag): Return the complex tensor with these parts.
copysign(input, other): Return the magnitude of one tensor with the sign of the other.
corrcoef(input, /): Return the correlation coefficients of the rows.
cos(input, /): Return the cosine of each element, in radians.
cos_(self): Replace each element by its cosine, and return the tensor.
cosh(input, /): Return the hyperbolic cosine of each element.
count_nonzero(input, dim=None): Return how many elements are not zero; it has no derivative.
cov(input, correction=1): Return the covariance matrix of the rows. | There are no weights.
cross(input, other, dim=-1): Return the cross product of vectors of three. | `dim` is the last axis unless it is given.
cumprod(input, dim): Return the running product along an axis.
deg2rad(input, /): Return angles in degrees as radians.
det(input, /): Return the determinant of square matrices.
diag_embed(input, /): Return matrices with the last axis on their diagonals. | There are no `offset`, `dim1` and `dim2`.
diagflat(input, offset=0): Return a matrix with the elements on a diagonal.
diff(input, n=1, dim=-1): Return the n-th differences along an axis. | There are no `prepend` and `append`.
digamma(input, /): Return the derivative of the logarithm of the gamma function.
dist(input, other, p=2.0): Return the p-norm of the difference of two tensors.
dot(input, tensor): Return the sum of the products of two vectors.
dstack(tensors): Join tensors along the third axis.
eq(input, other, /): Return where elements are equal; it has no derivative.
erf(input, /): Return the error function of each element.
erfc(input, /): Return 1 - erf of each element, accurate where it is small.
erfinv(input, /): Return the inverse of the error function.
exp(input, /): Return the exponential of each element.
exp2(input, /): Return 2 to the power of each element.
exp_(self): Replace each element by its exponential, and return the tensor.
expm1(input, /): Return exp(x) - 1 of each element, accurate near 0.
fliplr(input, /): Return the tensor with its second axis reversed.
flipud(input, /): Return the tensor with its first axis reversed.
float_power(input, exponent): Return the power, in double precision.
floor(input): Return each element rounded down; the derivative is zero.
floor_(self): Round each element down in place, and return the tensor.
fmax(input, other): Return the larger element, the other where one is NaN.
fmin(input, other): Return the smaller element, the other where one is NaN.
fmod(input, other, /): Return the remainder with the sign of the dividend.
frac(input, /): Return the fractional part of each element.
gcd(input, other): Return the greatest common divisor of whole numbers; it has no derivative.
ge(input, other, /): Return where one element is at least the other; it has no derivative.
gradient(input, spacing=1.0): Return the slopes by central differences. | `spacing` is a number; there are no `dim` and `edge_order`.
gt(input, other, /): Return where one element is greater than the other; it has no derivative.
heaviside(input, values): Return 0 left of zero, `values` at zero and 1 right of it.
hstack(tensors): Join tensors along the second axis, vectors along their only one.
hypot(input, other): Return the root of the sum of two squares.
i0(input, /): Return the modified Bessel function of order 0.
igamma(input, other): Return the regularised lower incomplete gamma function P(input, other).
igammac(input, other): Return the regularised upper incomplete gamma function Q(input, other).
imag(input, /): Return the imaginary part.
inner(input, other): Return the sum of the products over the last axes.
inverse(input, /): Return the inverse of square matrices.
isfinite(input, /): Return where elements are finite; it has no derivative.
isin(elements, test_elements, assume_unique=False, invert=False): Return which elements are among others; it has no derivative.
isinf(input, /): Return where elements are infinite; it has no derivative.
isnan(input, /): Return where elements are NaN; it has no derivative.
kron(input, other): Return the Kronecker product.
lcm(input, other): Return the least common multiple of whole numbers; it has no derivative.
ldexp(input, other): Return ``input * 2**other``.
le(input, other, /): Return where one element is at most the other; it has no derivative.
lerp(input, end, weight): Return ``input + weight * (end - input)``.
lgamma(input, /): Return the logarithm of the absolute value of the gamma function.
log(input, /): Return the natural logarithm of each element.
log10(input, /): Return the logarithm to base 10 of each element.
log1p(input, /): Return log(1 + x) of each element, accurate near 0.
log2(input, /): Return the logarithm to base 2 of each element.
log_(self): Replace each element by its logarithm, and return the tensor.
logaddexp(input, other): Return log(exp(x) + exp(y)), without overflow.
logaddexp2(input, other): Return log2(2**x + 2**y), without overflow.
logdet(input, /): Return the logarithm of the determinant.
logical_and(input, other, /): Return where both are not zero; it has no derivative.
logical_not(input, /): Return where elements are zero; it has no derivative.
logical_or(input, other, /): Return where one of two is not zero; it has no derivative.
logical_xor(input, other, /): Return where just one of two is not zero; it has no derivative.
logit(input, /): Return log(x / (1 - x)) of each element. | There is no `eps`.
lt(input, other, /): Return where one element is less than the other; it has no derivative.
matrix_exp(input, /): Return the exponential of square matrices.
matrix_power(input, n): Return the n-th power of square matrices.
maximum(input, other, /): Return the larger of two elements; ties share the derivative.
minimum(input, other, /): Return the smaller of two elements; ties share the derivative.
mm(input, mat2): Return the product of two matrices.
mul(input, other, /): Return the product, element by element.
mv(input, vec): Return the product of a matrix and a vector.
mvlgamma(input, p): Return the logarithm of the multivariate gamma function of dimension `p`.
nan_to_num(input, nan=0.0, posinf=None, neginf=None): Return the tensor with NaN and infinities replaced.
nanmean(input, dim=None, keepdim=False): Return the mean of what is not NaN.
nansum(input, dim=None, keepdim=False): Return the sum of what is not NaN.
ne(input, other, /): Return where elements differ; it has no derivative.
neg(input, /): Return minus each element.
neg_(self): Change the sign of each element in place, and return the tensor.
pinverse(input, rcond=None): Return the pseudo-inverse of a matrix.
polar(abs, angle): Return complex numbers with these magnitudes and angles.
polygamma(n, input): Return the n-th derivative of the digamma function.
pow(input, exponent, /): Return the power, element by element.
qr(input, /): Return ``(Q, R)``, with orthonormal columns and upper triangular. | There is no `some`: Q has as many columns as R rows.
quantile(input, q, dim=None, keepdim=False): Return quantiles, linear between elements. | There is no `interpolation`.
rad2deg(input, /): Return angles in radians as degrees.
reciprocal(input, /): Return 1 / x of each element.
reciprocal_(self): Replace each element by 1 / x, and return the tensor.
relu(input, /): Return max(x, 0) of each element; its derivative at 0 is 0.
relu_(self): Replace negative elements by 0, and return the tensor.
remainder(input, other, /): Return the remainder with the sign of the divisor.
renorm(input, p, dim, maxnorm): Return the tensor with slices along an axis shortened to a p-norm of `maxnorm`.
repeat_interleave(input, repeats, dim=None): Return the tensor with each element repeated along an axis.
roll(input, shifts, dims=None): Return the tensor with its elements moved round along axes.
rot90(input, k=1, dims=(0, 1)): Return the tensor turned by right angles in a plane.
rsqrt(input, /): Return 1 / sqrt(x) of each element.
rsqrt_(self): Replace each element by 1 / sqrt(x), and return the tensor.
searchsorted(sorted_sequence, values, right=False): Return where values would be put into a sorted vector, or each row into the sorted row beside it; it has no derivative. | There are no `side`, `sorter` and `out_int32`.
sgn(input, /): Return the sign of each element, z / abs(z) of complex ones.
sigmoid(input, /): Return 1 / (1 + exp(-x)) of each element.
sigmoid_(self): Replace each element by 1 / (1 + exp(-x)), and return the tensor.
sin(input, /): Return the sine of each element, in radians.
sin_(self): Replace each element by its sine, and return the tensor.
sinc(input, /): Return sin(pi x) / (pi x) of each element, 1 at 0.
sinh(input, /): Return the hyperbolic sine of each element.
slogdet(input, /): Return ``(sign, logabsdet)``: the sign and the logarithm of the absolute value of the determinant.
sqrt(input, /): Return the root of each element.
sqrt_(self): Replace each element by its root, and return the tensor.
square(input, /): Return the square of each element.
square_(self): Replace each element by its square, and return the tensor.
std(input, dim=None, unbiased=True, keepdim=False, *, correction=None): Return the standard deviation over `dim`, or of all elements.
take_along_dim(input, indices, dim=None): Return elements along an axis, one index for each result.
tan(input, /): Return the tangent of each element.
tanh(input, /): Return the hyperbolic tangent of each element.
tanh_(self): Replace each element by its hyperbolic tangent, and return the tensor.
tensordot(a, b, dims=2): Return the sum of products over pairs of axes.
tile(input, *dims): Return the tensor repeated along its axes.
trace(input, /): Return the sum of the diagonal of a matrix.
trapezoid(y, x=None, dx=1.0, dim=-1): Return the integral by the trapezoidal rule.
tril_indices(row, col, offset=0): Return the indices of the lower triangle of a matrix.
triu_indices(row, col, offset=0): Return the indices of the upper triangle of a matrix.
trunc(input): Return each element rounded towards zero; the derivative is zero.
vander(x, N=None, increasing=False): Return the powers of the elements of a vector, one row for each.
var(input, dim=None, unbiased=True, keepdim=False, *, correction=None): Return the variance over `dim`, or of all elements.
vdot(input, other): Return the sum of the products of two vectors, the first one conjugated.
view_as_complex(input, /): Return complex numbers whose parts stand on the last axis. | The result is a copy, no view.
view_as_real(input, /): Return the parts of complex numbers along a new last axis. | The result is a copy, no view.
vstack(tensors): Join tensors along the first axis; vectors are rows.
xlogy(input, other): Return ``input * log(other)``, 0 where `input` is 0.
"""

_ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "fix": "trunc", "greater": "gt", "greater_equal": "ge", "less": "lt",
    "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne", "row_stack": "vstack",
    "trapz": "trapezoid",
}  # fmt: skip

_DIFFERENT = {
    "asarray": "the dtype is kept; NumPy's arrays share their memory", "bernoulli": "the numbers are NumPy's",
    "compile": "nothing is compiled: see `fad.jit`", "empty": "the elements are zeros", "empty_like": "the elements are zeros",
    "load": "the file is not Python's pickle", "save": "the file is not Python's pickle", "manual_seed": "the numbers are NumPy's",
    "argsort": "equal elements always stay in order", "sort": "equal elements always stay in order",
    "multinomial": "the numbers are NumPy's", "normal": "the numbers are NumPy's", "poisson": "the numbers are NumPy's",
    "rand": "the numbers are NumPy's", "rand_like": "the numbers are NumPy's", "randint": "the numbers are NumPy's",
    "randint_like": "the numbers are NumPy's", "randn": "the numbers are NumPy's", "randn_like": "the numbers are NumPy's",
    "randperm": "the numbers are NumPy's",
}  # fmt: skip


# PyTorch's names of settings that fad calls otherwise.
SETTINGS = {
    "dim": "axis", "start_dim": "start", "end_dim": "end", "init": "init_value", "unflattened_size": "sizes",
}  # fmt: skip
_OURS = {ours: theirs for theirs, ours in SETTINGS.items()}


def in_torch_words(fun: Callable) -> inspect.Signature:
    """Return the signature of a function or layer of `fad.nn` in PyTorch's words, without random keys."""
    found: list[inspect.Parameter] = []
    for p in inspect.signature(fun).parameters.values():
        if p.name == "x" and not found:
            p = p.replace(name="input", kind=p.POSITIONAL_ONLY)
        if p.name != "key" or p.kind != p.KEYWORD_ONLY:
            found.append(p.replace(name=_OURS.get(p.name, p.name), annotation=p.empty))
    return inspect.Signature(found)


class SignatureOfCore:
    """``__signature__`` of a layer that is made of one of `fad.nn`; a class with a constructor of its own has its own."""

    def __get__(self, instance: Any, owner: Any) -> inspect.Signature:
        makers = [c for c in owner.__mro__ if "__init__" in vars(c)]
        if instance is not None or not hasattr(owner, "core_class") or "__signature__" not in vars(makers[0]):
            raise AttributeError("__signature__")
        return in_torch_words(owner.core_class)


def document(names: dict[str, Any]) -> None:
    """Give functions of the eager API their sentence and signature, and say what PyTorch's function differs in."""
    lines = dict(_parse(line) for line in _LINES.strip().splitlines())
    stubs = _stubs({name: parameters for name, (parameters, _, _) in lines.items()})
    seen: dict[int, str] = {}
    for name, thing in sorted(names.items(), key=lambda item: item[0] in _ALIASES):
        if not inspect.isfunction(thing) or id(thing) in seen:
            continue
        seen[id(thing)] = name
        if thing.__name__ not in names:  # made by another function, which knew no name
            thing.__name__ = thing.__qualname__ = name
        _, sentence, differs = lines.get(_ALIASES.get(name, name), ("", "", ""))
        if sentence:
            thing.__doc__ = sentence
            thing.__signature__ = inspect.signature(stubs[_ALIASES.get(name, name)])  # type: ignore[attr-defined]
        differs = differs or _DIFFERENT.get(name, "")
        own = inspect.cleandoc(thing.__doc__ or "")
        note = f"As ``torch.{name}``, without ``out=``" + (f". {differs[0].upper()}{differs[1:].rstrip('.')}." if differs else ".")
        thing.__doc__ = f"{own}\n\n{note}"


def _parse(line: str) -> tuple[str, tuple[str, str, str]]:
    head, _, text = line.partition("): ")
    name, _, parameters = head.partition("(")
    sentence, _, differs = text.partition(" | ")
    return name, (parameters, sentence, differs)


def _stubs(parameters: dict[str, str]) -> dict[str, Callable]:
    """Return a function without a body for each name, so that Python itself reads the signatures."""
    found: dict[str, Any] = {}
    exec("\n".join(f"def {name}({given}): ..." for name, given in parameters.items()), found)
    return found
