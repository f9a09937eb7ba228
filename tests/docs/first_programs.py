"""Print the README's first programs, which need what it first tells to install: python tests/first_programs.py"""

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
print(*re.findall(r"```python\n(.*?)```", README, re.DOTALL)[:2], sep="\n")
