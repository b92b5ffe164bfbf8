"""``python -m bbb_numpy.grading.worker``: the process that `sandbox` starts."""

import json
import signal
import sys

from .sandbox import serve

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        serve(*json.loads(sys.argv[1]))
    except KeyboardInterrupt:  # the command says so itself
        sys.exit(130)
    finally:  # all is said: an exception during the interpreter's end would be printed
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
