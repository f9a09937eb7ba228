"""Run the checks on many programs, and say what they found."""

import re
import signal
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from . import calls, nested, sparse  # noqa: F401  their checks are registered
from .arguments import with_noise
from .case import Case
from .checks import CHECKS
from .compare import Difference, Refused, Skipped
from .generate import generate
from .known import VALUES, known
from .rounding import depends_on_rounding

LIMIT = 60  # seconds for one check of one program


@dataclass
class Finding:
    """A program that a check objects to."""

    program: object
    check: str
    message: str

    @property
    def signature(self):
        """The message without what differs from program to program, to count findings of one cause together."""
        text = re.sub(r"^call \d+, [\w ]+: ", "", self.message.partition("\n")[0])
        text = re.sub(r"\(?\[.*", "", text) if "wanted" in text else text
        return re.sub(r"-?\d[\d.]*(e[-+]?\d+)?", "#", text)[:120]

    def __str__(self):
        return (
            f"# {self.program.kind} program {self.program.seed}, check {self.check!r}:\n#   "
            + self.message.replace("\n", "\n#   ")
            + f"\n{self.program.script()}\n"
        )


@dataclass
class Report:
    """What came of many programs."""

    programs: int = 0
    outcomes: Counter = field(default_factory=Counter)
    checks: Counter = field(default_factory=Counter)
    refusals: Counter = field(default_factory=Counter)
    examples: dict = field(default_factory=dict)
    findings: list = field(default_factory=list)

    def __str__(self):
        counts = ", ".join(f"{n} {what}" for what, n in sorted(self.outcomes.items()))
        return f"{self.programs} programs; checks: {counts}"


class TooLong(Exception):
    """A check did not end in time."""


@contextmanager
def limited(seconds):
    """Raise TooLong if the body takes longer, in time of the processor: others may keep it busy."""

    def stop(*_):
        raise TooLong(f"longer than {seconds} s")

    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def examine(program, check, seed=None, case=None):
    """Return the outcome of a check and a message: same, skipped, refused, rounding or finding.

    ``case`` is what other checks of the same program have looked at.
    """
    seed = program.seed or 0 if seed is None else seed
    case = Case(program, seed) if case is None else case
    try:
        _check(case, program, check)
    except Skipped as reason:
        return "skipped", str(reason)
    except Refused as refusal:
        return "refused", str(refusal)
    except Difference as found:
        if found.numeric and explained_by_rounding(program, check, seed):
            return "rounding", str(found)
        return "finding", str(found)
    except Exception as error:
        return "finding", f"the check itself met {error!r}"
    return "same", ""


def _check(case, program, check):
    case.begin(program, check)
    with limited(LIMIT), warnings.catch_warnings(action="ignore"):
        CHECKS[check](case)


def explained_by_rounding(program, check, seed):
    """Return whether a difference depends on a tie or on rounding.

    Then it goes away when the numbers are moved, or a plain run that rounds otherwise differs as well.
    """
    r = np.random.default_rng(seed)
    for size in (1e-3, 0.05, 0.2):
        moved = program.given(*with_noise(r, program.arguments, size))
        try:
            _check(Case(moved, seed), moved, check)
        except Difference:
            continue
        except Exception:  # it says nothing about these numbers
            continue
        return True
    return depends_on_rounding(program, check not in VALUES)


DEAR = [
    "pulled twice", "second order", "vmap of grad", "jacobian", "without writes", "nested", "third order",
    "sparse jacobian", "sparse hessian",
]  # fmt: skip
DEAR_AND_JITTED = ["jit", "jit of grad", "jit of vmap", "sparse jacobian under jit"]


def drawn(seed, always=()):
    """Return the checks of a program in a search: the quick ones, some, and each of the dear ones for a share."""
    r = np.random.default_rng([seed, 1])
    some = {DEAR_AND_JITTED[r.integers(len(DEAR_AND_JITTED))], *always}
    some |= {name for name in DEAR if r.random() < 0.4}
    return [name for name in CHECKS if name in some or name not in (*DEAR, *DEAR_AND_JITTED)]


def run(seeds, kind="pure", checks=None, stop=None, tell=lambda finding: None, strict=False, search=False):
    """Return the report of the programs of these seeds.

    ``stop`` is a time after which none begins, and ``strict`` makes findings of what is known. A ``search`` of very
    many programs draws some checks for each, with at least one of jit.
    """
    report = Report()
    for seed in seeds:
        if stop is not None and time.monotonic() > stop:
            break
        program = generate(seed, kind)
        report.programs += 1
        seen = set()
        case = Case(program, seed, search)
        for check in drawn(seed, checks or ()) if search else checks or CHECKS:
            outcome, message = examine(program, check, seed, case)
            if outcome == "finding" and not strict and (reason := known(program, check, message)):
                outcome, message = "known", reason
            report.outcomes[outcome] += 1
            report.checks[check, outcome] += 1
            if outcome in ("refused", "known", "rounding"):
                words = re.sub(r"\(.*?\)|\d", "", message.partition("\n")[0]).split()[:14]
                key = outcome, " ".join(words) if outcome != "rounding" else check
                report.refusals[key] += 1
                report.examples.setdefault(key, seed)
            finding = Finding(program, check, message)
            if outcome == "finding" and finding.signature not in seen:
                seen.add(finding.signature)
                report.findings.append(finding)
                tell(finding)
    return report
