"""The file of mushrooms: one column per letter, and every damage is refused."""

import os

import numpy as np
import pytest

from bbb_studies.data.locate import ENVIRONMENT, DamagedDataError, MissingDataError
from bbb_studies.data.mushroom import CODES, COLUMNS, COUNTS, FILE, load

needs_data = pytest.mark.skipif(
    not os.environ.get(ENVIRONMENT), reason=f"{ENVIRONMENT} is not set: no mushrooms"
)


def written(root, rows, header=COLUMNS):
    (root / "mushroom").mkdir()
    text = "\n".join([",".join(header), *(",".join(row) for row in rows)])
    (root / "mushroom" / FILE).write_text(text + "\n")


def rows():
    """Made-up mushrooms of the right classes; row i has the i-th letter of every column."""
    kinds = "e" * COUNTS["e"] + "p" * COUNTS["p"]
    return [[k, *(c[i % len(c)] for c in CODES.values())] for i, k in enumerate(kinds)]


@needs_data
def test_the_file_has_the_mushrooms_that_its_description_says():
    found = load()
    assert found.x.shape == (8124, 117)
    assert found.x.dtype == np.float32
    assert found.poisonous.sum() == 3916
    assert found.x[:, found.names.index("stalk-root=?")].sum() == 2480
    assert (found.x[:, found.names.index("veil-type=p")] == 1).all()
    assert (found.x.sum(axis=0) > 0).all()  # every letter occurs


def test_every_letter_has_its_own_column(root):
    text = rows()
    written(root, text)
    found = load()
    assert found.x.shape == (8124, 117) == (len(text), len(found.names))
    assert set(np.unique(found.x)) == {0.0, 1.0}
    assert (found.x.sum(axis=1) == 22).all()
    assert (~found.poisonous[:4208]).all()
    assert found.poisonous[4208:].all()
    for row in (0, 5, 8123):
        on = {found.names[i] for i in np.flatnonzero(found.x[row])}
        expected = zip(COLUMNS[1:], text[row][1:], strict=True)
        assert on == {f"{name}={letter}" for name, letter in expected}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda rows: rows[:-1], "4208 edible .* 3916 poisonous .* it has 4208 and 3915"),
        (lambda rows: [["p", *rows[0][1:]], *rows[1:]], "it has 4207 and 3917"),
        (lambda rows: [["?", *rows[0][1:]], *rows[1:]], r"row 1 has \? for class"),
        (lambda rows: [rows[0], ["e", "q", *rows[1][2:]], *rows[2:]], "row 2 has q for cap-shape"),
    ],
)
def test_a_damaged_file_is_refused(root, damage, said):
    written(root, damage(rows()))
    with pytest.raises(DamagedDataError, match=said):
        load()


def test_without_the_file_the_error_says_where_to_get_it(root):
    with pytest.raises(MissingDataError, match="UCI machine learning repository, 'Mushroom'"):
        load()
