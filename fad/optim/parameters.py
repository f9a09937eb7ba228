"""What the settings of optimisers are, said once for all of them: `help` reads it from here."""

from __future__ import annotations

from fad.core.primitives.docstring_sections import complete

_OPTIMISERS = """
params : tree of arrays or Module
    The model, whose arrays `step` changes in place; without it use the pure pair ``init`` and ``update``.
lr : float or callable
    The learning rate: a number, or a schedule that gives it for the number of the step.
weight_decay : float
    Factor of the parameters that is added to the gradient.
AdamW.weight_decay, Lion.weight_decay : float
    Factor by which the parameters shrink in each step, times the learning rate, apart from the gradient.
maximize : bool, keyword only
    Whether to go up the gradient.
momentum : float
    Share of the last step's direction that is kept.
dampening : float
    Share of the gradient that does not enter the momentum.
nesterov : bool
    Whether the momentum is applied in advance.
betas : (float, float)
    Decay of the running means of the gradient and of its square.
eps : float
    Added to the denominator.
amsgrad : bool
    Whether the largest second moment so far divides.
rho : float
    Decay of the running means of squares.
lr_decay : float
    The learning rate is divided by ``1 + lr_decay * steps``.
initial_accumulator_value : float
    What the sums of squares begin with.
momentum_decay : float
    How quickly the momentum grows to its final value.
decoupled_weight_decay : bool
    Whether the parameters shrink as in `AdamW`.
alpha : float
    Decay of the running mean of squares.
ASGD.alpha : float
    Exponent with which the learning rate falls.
centered : bool
    Whether the squared mean of the gradient is subtracted.
etas : (float, float)
    Factors of the step size after a change of sign, and without one.
step_sizes : (float, float)
    The smallest and the largest step.
lambd : float
    Decay of parameters and learning rate.
t0 : float
    Step from which on the mean is taken.
history_size : int
    How many steps the curvature is made of.
model : tree of arrays or Module
    What is averaged, or trained.
decay : float
    Share of the old mean that is kept in each update.
grads : tree of arrays
    The gradient, in the structure of the model.
max_norm : float
    Longer gradients are shortened to it.
limit : float
    Elements outside -limit ... limit are set to its end.
optimizer : Optimizer
    Made for this model.
epochs : int, keyword only
    How often the data are gone through.
description : str, keyword only
    Shown beside the progress bar.
loss : number
    The value of the loss.
step : int
    The number of the step, for the message.
"""

_ERRORS = """
lr : ValueError
    It is negative, or neither number nor function.
weight_decay : ValueError
    It is negative.
nesterov : ValueError
    It is true without momentum, or with dampening.
betas : ValueError
    One lies outside of [0, 1).
SGD.momentum, RMSProp.momentum : ValueError
    It is negative.
RMSProp.alpha : ValueError
    It lies outside of [0, 1].
rho, decay : ValueError
    It lies outside of [0, 1].
etas : ValueError
    They are not one number in (0, 1) and one above 1.
check_finite : NonFiniteLossError
    The loss is infinite or NaN.
max_norm : FloatingPointError
    The gradient has infinities or NaNs.
global_norm : TypeError
    A leaf is no array of numbers.
"""

_PAPERS = {
    "LBFGS": "J. Nocedal, Math. Comp. 35 (1980); J. Nocedal and S. Wright, Numerical Optimization (2006), chapter 7",
    "SGD": "I. Sutskever, J. Martens, G. Dahl and G. Hinton, ICML 2013",
    "RMSProp": "T. Tieleman and G. Hinton, Neural Networks for Machine Learning, lecture 6.5 (2012)",
    "EMA": "B. Polyak and A. Juditsky, SIAM J. Control Optim. 30 (1992)",
    "clip_by_global_norm": "R. Pascanu, T. Mikolov and Y. Bengio, ICML 2013",
}

_RESULTS = {
    "check_finite": "None\n    or NonFiniteLossError is raised.",
    "clip_by_global_norm": "(tree of arrays, number)\n    The gradient, shortened, and the norm that it had.",
    "clip_by_value": "tree of arrays",
    "global_norm": "number\n    The root of the sum of all squares.",
}


def document_optimisers(names: dict) -> None:
    """Add sections on parameters to the docstrings of optimisers and what belongs to them."""
    complete(
        names, _OPTIMISERS, lambda name, thing: _RESULTS.get(name, ""), _ERRORS, lambda name: _PAPERS.get(name, "")
    )
