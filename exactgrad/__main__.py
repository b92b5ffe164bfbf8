"""Run the command as ``python -m exactgrad``, which works without an installation, too."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
