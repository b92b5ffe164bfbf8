"""Write ``uci.md``, its records and pictures beside this file from a run's output folder.

bbb-numpy uci --jobs 2 --out uci
python benchmarks/uci.py uci
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bbb_numpy.uci import page, pictures
from bbb_numpy.uci.records import FOLDER, line, read

HERE = Path(__file__).parent
COMMAND = "bbb-numpy uci --jobs 2 --out uci"


def main() -> None:
    """Render the page of a finished run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", help="output folder of bbb-numpy uci")
    args = parser.parse_args()
    records = read(Path(args.folder) / FOLDER)
    text = page.page(records, COMMAND)
    (HERE / "uci_records.jsonl").write_text("".join(map(line, records)), encoding="utf-8")
    for draw in (pictures.scores, pictures.calibration, pictures.pit):
        draw(records).savefig(HERE / f"uci_{draw.__name__}.png", dpi=100)
    (HERE / "uci.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
