"""Make ``python -m bbb_numpy`` the command ``bbb-numpy``."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
