"""Hunt: ``python -m tests.fuzz --kind pure --seed 0 --programs 1000``; README.md says the rest."""

import argparse
import os
import time
import warnings
from collections import Counter

from .campaign import CHECKS, Finding, examine, run
from .generate import generate
from .kinds import KINDS
from .shrink import shrink

parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
parser.add_argument("--kind", choices=KINDS, default="pure")
parser.add_argument("--seed", type=int, default=0, help="the first seed")
parser.add_argument("--programs", type=int, default=100, help="how many")
parser.add_argument("--minutes", type=float, help="stop after so long")
parser.add_argument("--check", action="append", choices=CHECKS, help="only this check, or several")
parser.add_argument("--show", action="store_true", help="print the programs, and run nothing")
parser.add_argument("--shrink", action="store_true", help="shrink each finding")
parser.add_argument("--search", action="store_true", help="draw some checks for each program, and compile in a hurry")
parser.add_argument("--strict", action="store_true", help="what known.py lists is a finding too")
parser.add_argument("--each", type=int, default=2, help="print so many findings that look alike")
parser.add_argument("--refusals", action="store_true", help="count what fad refused, with a seed for each")


alike = Counter()


def tell(finding):
    alike[finding.signature] += 1
    if alike[finding.signature] > options.each:
        return
    print(finding, flush=True)
    if options.shrink:
        small = shrink(finding.program, finding.check)
        print(Finding(small, finding.check, "shrunk: " + examine(small, finding.check)[1]), flush=True)


options = parser.parse_args()
warnings.simplefilter("ignore")
seeds = range(options.seed, options.seed + options.programs)
if options.show:
    for seed in seeds:
        print(f"# {options.kind} program {seed}\n{generate(seed, options.kind).script()}\n")
else:
    stop = time.monotonic() + 60 * options.minutes if options.minutes else None
    if options.search:
        os.environ["FAD_CACHE_DIR"] = ""  # what is compiled in a hurry is not kept
    report = run(seeds, options.kind, options.check, stop, tell, options.strict, options.search)
    if options.refusals:
        for key, count in report.refusals.most_common():
            print(f"{count:6d}  {key[0]:9s} {key[1]}   (program {report.examples[key]})")
    for (check, outcome), count in sorted(report.checks.items()):
        print(f"{count:6d}  {check}: {outcome}")
    print(report)
    for signature, count in alike.most_common():
        print(f"{count:6d}  {signature}")
    print(f"{len(report.findings)} findings")
