"""The C of kernels, run by NumPy: declarations, assignments and expressions, and no implicit conversion.

What C would convert in silence is an error here: both operands of an operation, both branches of a choice, and the
two sides of an assignment must have one type. Whatever else C has is refused.
"""

import re

import numpy as np
import scipy.special

TYPES = {
    "bool": np.bool_, "int": np.int32, "long long": np.int64, "float": np.float32, "double": np.float64,
    "unsigned int": np.uint32, "unsigned long long": np.uint64,
}  # fmt: skip
_FUNCTIONS = {
    **{
        name: getattr(np, name)
        for name in (
            "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh",
            "cosh", "tanh", "floor", "ceil", "trunc", "rint", "fabs", "signbit", "hypot", "copysign",
        )
    },
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": np.arctan2, "pow": np.power, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
    "normcdf": scipy.special.ndtr,
    **{f"__{kind}add_rn": np.add for kind in "df"},
    **{f"__{kind}sub_rn": np.subtract for kind in "df"},
    **{f"__{kind}mul_rn": np.multiply for kind in "df"},
}  # fmt: skip
_LEVELS = [
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), (">>",), ("+", "-"), ("*", "/"),
]  # fmt: skip
_RUN = {
    "||": np.logical_or, "&&": np.logical_and, "|": np.bitwise_or, "^": np.bitwise_xor, "&": np.bitwise_and,
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "+": np.add, "-": np.subtract, ">>": np.right_shift, "*": np.multiply, "/": np.divide,
}  # fmt: skip
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:e[+-]?\d+)?(?:U?LL|f)?)|(?P<name>[A-Za-z_]\w*)|(?P<symbol>\|\||&&|>>|[<>=!]=|[-+*/&|^<>?:!=();,]))"
)
_TYPE = re.compile(r"(unsigned long long|unsigned int|long long|bool|int|float|double)\b")


class CError(SyntaxError):
    """What is no C, or C that no kernel of fad should have."""


def _tokens(text):
    found, at = [], 0
    text = text.strip()
    while at < len(text):
        kind = _TYPE.match(text, at) or _TYPE.match(text, at + len(text[at:]) - len(text[at:].lstrip()))
        if kind:
            found.append(("type", kind[1]))
            at = kind.end()
            continue
        m = _TOKEN.match(text, at)
        if not m:
            raise CError(f"unknown C at {text[at : at + 20]!r}")
        found.append((m.lastgroup, m[m.lastgroup]))
        at = m.end()
    return found


class Body:
    """The statements of a kernel; `run` takes the values of the parameters, and returns those of the results."""

    def __init__(self, text, reads, results):
        self.tokens = _tokens(text)
        self.reads = reads
        self.results = results  # name -> dtype

    def run(self, values):
        self.at, self.values = 0, dict(values)
        self.written = {}
        with np.errstate(all="ignore"):
            while self.at < len(self.tokens):
                self._statement()
        if set(self.written) != set(self.results):
            raise CError(f"results {set(self.results) - set(self.written)} are not written")
        found, self.values, self.written = self.written, {}, {}  # it holds no array between calls
        return found

    def _peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def _take(self, *texts):
        kind, text = self._peek()
        if texts and text not in texts:
            raise CError(f"{text!r} where {texts} was expected")
        self.at += 1
        return kind, text

    def _statement(self):
        kind, text = self._take()
        name = self._take()[1] if kind == "type" else text
        self._take("=")
        value = self._choice()
        self._take(";")
        if kind == "type":
            if name in self.values or value.dtype != TYPES[text]:
                raise CError(f"{text} {name} is known, or given a {value.dtype}")
            self.values[name] = value
            return
        if name not in self.results or name in self.written or value.dtype != self.results[name]:
            raise CError(f"{name} is no result of type {value.dtype}")
        self.written[name] = value

    def _choice(self):
        value = self._binary(0)
        if self._peek()[1] != "?":
            return value
        self._take("?")
        first = self._choice()
        self._take(":")
        second = self._choice()
        if value.dtype != np.bool_ or first.dtype != second.dtype:
            raise CError(f"{value.dtype} ? {first.dtype} : {second.dtype}")
        return np.where(value, first, second)

    def _binary(self, level):
        if level == len(_LEVELS):
            return self._unary()
        value = self._binary(level + 1)
        while self._peek()[1] in _LEVELS[level]:
            symbol = self._take()[1]
            other = self._binary(level + 1)
            if value.dtype != other.dtype:
                raise CError(f"{value.dtype} {symbol} {other.dtype}")
            if (symbol in ("||", "&&") and value.dtype != np.bool_) or (symbol in "+-*/" and value.dtype == np.bool_):
                raise CError(f"{value.dtype} {symbol} {other.dtype}")
            if symbol == ">>" and value.dtype.kind != "u":
                raise CError("a shift of numbers with a sign")
            if symbol == "/" and value.dtype.kind != "f":
                raise CError("a division of whole numbers")
            if symbol in "+-*" and value.dtype.kind != "u":
                raise CError("fractions, which a compiler may contract, or whole numbers, whose overflow C leaves open")
            value = _RUN[symbol](value, other)
        return value

    def _unary(self):
        kind, text = self._take()
        if text == "-":
            value = self._unary()
            if value.dtype.kind != "f" and not (value.ndim == 0 and self.tokens[self.at - 1][0] == "number"):
                raise CError("a whole number's sign")
            return -value
        if text == "!":
            return np.logical_not(self._of(self._unary(), np.bool_))
        if text == "(" and self._peek()[0] == "type":
            to = np.dtype(TYPES[self._take()[1]])
            self._take(")")
            value = self._unary()
            if value.dtype.kind == "f" and to.kind != "f":
                raise CError(f"{value.dtype} as {to}")
            return value.astype(to)
        if text == "(":
            value = self._choice()
            self._take(")")
            return value
        return self._literal(text) if kind == "number" else self._named(text)

    def _of(self, value, dtype):
        if value.dtype != dtype:
            raise CError(f"{value.dtype} where {dtype} was expected")
        return value

    def _literal(self, text):
        if text.endswith("ULL"):
            return np.asarray(int(text[:-3]), np.uint64)
        if text.endswith("LL"):
            return np.asarray(int(text[:-2]), np.int64)
        if "." in text or "e" in text:
            return np.asarray(float(text[:-1]), np.float32) if text.endswith("f") else np.asarray(float(text))
        return np.asarray(int(text), np.int32)

    def _named(self, name):
        if name in ("true", "false"):
            return np.asarray(name == "true")
        if self._peek()[1] != "(":
            if name not in self.values:
                raise CError(f"{name} is not known here")
            return self.values[name]
        self._take("(")
        args = [self._choice()]
        while self._peek()[1] == ",":
            self._take(",")
            args.append(self._choice())
        self._take(")")
        if name not in _FUNCTIONS or any(a.dtype.kind != "f" or a.dtype != args[0].dtype for a in args):
            raise CError(f"{name} of {[a.dtype for a in args]}")
        if name.endswith("_rn") and args[0].dtype.char != name[2]:
            raise CError(f"{name} of {args[0].dtype}")
        value = np.asarray(_FUNCTIONS[name](*args))
        return value if name == "signbit" else self._of(value, args[0].dtype)


def parameters(text):
    """Return {name: dtype} of a list of parameters, ``"float64 x0, int32 x1"``."""
    pairs = [part.split() for part in text.split(",") if part.strip()]
    for dtype, name in pairs:
        if np.dtype(dtype).name != dtype or name in ("i", "n") or name.startswith("_"):
            raise CError(f"no parameter may be {dtype} {name}")
    return {name: np.dtype(dtype) for dtype, name in pairs}
