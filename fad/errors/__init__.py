"""Every exception of fad. Each docstring is that error's page in the documentation: a wrong program, and the right one.

All of them derive from :class:`FadError` and from the built-in exception a NumPy user would expect,
so ``except TypeError`` keeps working. The message ends with the user's own line
and the address of the error's page.
"""

from fad.errors.arguments import (
    ArgnumsError,
    BatchingError,
    ComplexGradientError,
    DtypeMismatchError,
    IntegerInputError,
    IntegerOutputError,
    NonScalarOutputError,
    ShapeMismatchError,
    TreeMismatchError,
    UnsupportedInputError,
)
from fad.errors.base import (
    SITE,
    FadError,
    page_of,
)
from fad.errors.packages import (
    BackendFunctionError,
    BackendMismatchError,
    BackendNotFoundError,
    ExtraNotInstalledError,
)
from fad.errors.recording import (
    DonatedArrayError,
    ImpureFunctionError,
    ImpureFunctionWarning,
    LoopFallbackWarning,
    MemoryLimitError,
    NativeFallbackWarning,
    NonArrayOutputError,
    PathLimitWarning,
    StaticArgumentError,
)
from fad.errors.rules import (
    CustomRuleError,
    DerivativeError,
    GaugeDependenceWarning,
    GradientCheckError,
    NotLinearError,
    NotSparseError,
    PullbackConsumedError,
)
from fad.errors.tracers import (
    BatchedValueError,
    ItemAssignmentError,
    LeakedTracerError,
    MissingRuleError,
    MutationError,
    RefusedAttributeError,
    TracerConversionError,
)

__all__ = [  # in the order of their page in the documentation
    "SITE",
    "ArgnumsError",
    "BackendFunctionError",
    "BackendMismatchError",
    "BackendNotFoundError",
    "BatchedValueError",
    "BatchingError",
    "ComplexGradientError",
    "CustomRuleError",
    "DerivativeError",
    "DonatedArrayError",
    "DtypeMismatchError",
    "ExtraNotInstalledError",
    "FadError",
    "GaugeDependenceWarning",
    "GradientCheckError",
    "ImpureFunctionError",
    "ImpureFunctionWarning",
    "IntegerInputError",
    "IntegerOutputError",
    "ItemAssignmentError",
    "LeakedTracerError",
    "LoopFallbackWarning",
    "MemoryLimitError",
    "MissingRuleError",
    "MutationError",
    "NativeFallbackWarning",
    "NonArrayOutputError",
    "NonScalarOutputError",
    "NotLinearError",
    "NotSparseError",
    "PathLimitWarning",
    "PullbackConsumedError",
    "RefusedAttributeError",
    "ShapeMismatchError",
    "StaticArgumentError",
    "TracerConversionError",
    "TreeMismatchError",
    "UnsupportedInputError",
    "page_of",
]  # fmt: skip

for _name in __all__:
    if isinstance(_thing := globals()[_name], type):
        _thing.__module__ = __name__  # what tracebacks show, pickle writes and the addresses of the errors' pages name
del _name, _thing
