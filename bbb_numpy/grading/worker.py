"""``python -m bbb_numpy.grading.worker``: the process that `sandbox` starts."""

import json
import sys

from .sandbox import serve

if __name__ == "__main__":
    serve(*json.loads(sys.argv[1]))
