"""``python -m exactgrad``, also where only the folder was copied."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
