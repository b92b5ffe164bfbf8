"""Print the lines of Python in each folder beside its budget in CONTRIBUTING.md; exit 1 if above.

python tests/project/lines.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (`[^|]*`) \| ([\d,]+) \|", re.MULTILINE)


def lines(path: Path) -> int:
    """Return the lines of a file, or of all Python files below a folder."""
    files = [path] if path.is_file() else path.rglob("*.py")
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


if __name__ == "__main__":
    above = []
    for paths, budget in ROW.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        names = re.findall("`(.*?)`", paths)
        most, now = int(budget.replace(",", "")), sum(lines(ROOT / name) for name in names)
        above += names if now > most else []
        print(f"{now:7,} of {most:6,}  {', '.join(names)}{'  ABOVE ITS BUDGET' * (now > most)}")
    sys.exit(f"above the budget of CONTRIBUTING.md: {', '.join(above)}" if above else 0)
