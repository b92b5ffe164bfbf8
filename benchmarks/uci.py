"""Write ``uci.md``, its records and pictures beside this file from a run's output folder.

Records of trials that the run has not repeated stay.

bbb-numpy uci --jobs 2 --out uci
bbb-numpy uci --gap --jobs 2 --out uci
python benchmarks/uci.py uci
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bbb_studies.uci import gaps, page, pictures
from bbb_studies.uci.records import RECORDS_FOLDER, Record, line, read

HERE = Path(__file__).parent
COMMAND = """\
bbb-numpy uci --jobs 2 --out uci
bbb-numpy uci --gap --jobs 2 --out uci
python benchmarks/uci.py uci"""


def _merge_records(file: Path, folder: Path) -> list[Record]:
    """Return the records of a run and those kept here that it does not repeat; keep them all."""
    earlier = read(file) if file.exists() else []
    by_key = {
        record["key"]: record for record in [*earlier, *(read(folder) if folder.exists() else [])]
    }
    records = [by_key[key] for key in sorted(by_key)]
    if records:
        file.write_text("".join(map(line, records)), encoding="utf-8")
    return records


def main() -> None:
    """Render the page of a finished run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", help="output folder of bbb-numpy uci")
    args = parser.parse_args()
    records = _merge_records(HERE / "uci_records.jsonl", Path(args.folder) / RECORDS_FOLDER)
    gap_records = _merge_records(
        HERE / "uci_gap_records.jsonl", Path(args.folder) / gaps.GAPS_FOLDER / RECORDS_FOLDER
    )
    text = page.page(records, COMMAND, gap_records)
    for draw in (pictures.scores, pictures.calibration, pictures.pit):
        draw(records).savefig(HERE / f"uci_{draw.__name__}.png", dpi=100)
    if gap_records:
        pictures.gaps(gap_records).savefig(HERE / "uci_gaps.png", dpi=100)
    (HERE / "uci.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
