"""The file of mushrooms: one column per letter, and every damage is refused."""

import hashlib

import numpy as np
import pytest
from synthetic_data import needs_data

from bbb_studies.data.locate import SETS, DamagedDataError, MissingDataError
from bbb_studies.data.mushroom import FILE, LETTERS, load


@needs_data
def test_the_file_has_the_mushrooms_that_its_description_says():
    found = load()
    assert found.x.shape == (8124, 117)
    assert found.x.dtype == np.float32
    assert found.poisonous.sum() == 3916
    assert found.x[:, found.names.index("stalk-root=?")].sum() == 2480
    assert (found.x[:, found.names.index("veil-type=p")] == 1).all()
    assert (found.x.sum(axis=0) > 0).all()  # every letter occurs


def test_every_letter_has_its_own_column_and_other_letters_are_refused(root, monkeypatch):
    with pytest.raises(MissingDataError, match="UCI machine learning repository, 'Mushroom'"):
        load()
    # row i has the i-th letter of every column, and every third is poisonous
    rows = [["eep"[i % 3], *(c[i % len(c)] for c in LETTERS.values())] for i in range(30)]
    lines = [",".join(row) for row in rows]
    (root / "mushroom").mkdir()
    (root / "mushroom" / FILE).write_text("\n".join([",".join(["class", *LETTERS]), *lines]) + "\n")
    with pytest.raises(DamagedDataError, match="its checksum is another"):
        load()
    checksum = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    monkeypatch.setitem(SETS["mushroom"]["sha256"], FILE, checksum)
    found = load()
    assert found.poisonous.tolist() == [False, False, True] * 10
    for row, on in zip(rows, found.x, strict=True):
        expected = [f"{name}={letter}" for name, letter in zip(LETTERS, row[1:], strict=True)]
        assert [found.names[i] for i in np.flatnonzero(on)] == expected
