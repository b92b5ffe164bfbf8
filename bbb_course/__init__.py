"""Grade answers to the exercises: exact proofs first, then a diagnosis that is proved as well.

`judge` grades a function in this process, `sandbox` a file in one of its own; `keys` has the right
answer of each exercise and its known mistakes. A student's file is code that is run.
"""

from .exercise import Verdict
from .judging import judge
from .workload import effort

__all__ = ["Verdict", "effort", "judge"]
