"""What cannot be done is one line on standard error, status 2, and no file that was not there."""

import numpy as np
import pytest

from bbb_numpy import BayesianMLPClassifier, save
from bbb_numpy.cli.main import main

pytestmark = pytest.mark.brief
HOUSES = "size,kind,same,price,entropy\n" + "1,a,1,3,1\n2,b,1,5,1\n3,a,1,7,1\n4,b,1,8,1\n" * 5
FIT = ["fit", "d.csv", "--target", "price"]
KIND = ["fit", "d.csv", "--target", "kind"]
EVALUATE = ["evaluate", "d.csv", "--target"]
LONG = 250 * "m"  # the system takes it, but not the name that it has while it is written
TYPED = [
    (
        ["fit", "d.csv"],
        "name the column to predict with --target; d.csv has 'size', 'kind', 'same'",
    ),
    (["fit", "d.csv", "--target", "prise"], "no column 'prise'; did you mean 'price'? It has 'si"),
    ([*FIT, "--inputs", "siz"], "no column 'siz'; did you mean 'size'?"),
    ([*FIT, "--leave-out", "knd"], "no column 'knd'; did you mean 'kind'?"),
    ([*FIT, "--categories", "x"], "no column 'x'; it has"),
    ([*FIT, "--leave-out", "size", "kind", "same", "entropy"], "leaves no input beside the target"),
    ([*FIT, "--inputs", "price"], "cannot be one of the inputs"),
    ([*FIT, "--separator", "tab"], "no column 'price'"),
    ([*FIT, "--class-weight", "balanced"], "--class-weight is for classification, not for regr"),
    ([*FIT, "--task", "regression", "--likelihood", "poisson"], "is not for regr"),
    ([*FIT, "--plot", "a.png"], "a number against one input column; there are 'size', 'kind=a', "),
    ([*FIT, "--model", "d.csv"], "would replace another file"),
    ([*FIT, "--model", "."], ". cannot be written: name a file in a folder that exists"),
    ([*FIT, "--model", "no/m.npz"], "no/m.npz cannot be written: name a file in a folder"),
    ([*FIT, "--model", ""], "'' cannot be written: name a file in a folder that exists"),
    ([*FIT, "--model", LONG], f"{LONG}: File name too long"),
    ([*FIT, "--model", "d.csv/m.npz"], "d.csv/m.npz cannot be written: name a file in a folder"),
    ([*FIT, "--plot", ""], "'' cannot be written: name a file in a folder that exists"),
    ([*FIT, "--plot", "a.table"], "a picture must end in .png, or one of"),
    ([*FIT, "--inference", "nuts", "--checkpoint", ""], "checkpoint must be the path of a folder"),
    ([*FIT, "--inference", "nuts", "--checkpoint", "d.csv"], "d.csv: File exists"),
    (["predict", "of classes.npz", "d.csv", "--output", ""], "'' cannot be written: name a file"),
    ([*EVALUATE, "price", "--json", ""], "'' cannot be written: name a file"),
    ([*EVALUATE, "price", "--plot", "plot"], "a picture must end in .png"),
    ([*FIT, "--prior", "laplace", "--estimator", "flipout"], "Flipout needs KL(q || prior) in"),
    ([*FIT, "--decimal", ".", "--thousands", "."], "must be different signs; got '.' for both"),
    ([*KIND, "--task", "regression"], "'a' is not a number, as the target of regression must be"),
    ([*KIND, "--likelihood", "student-t"], "student-t is not for classification"),
    ([*KIND, "--plot", "a.png"], "one input column; the target holds classes. Leave it out"),
    (["fit", "d.csv", "--target", "same", "--task", "classification"], "y has only one class, 1"),
    (["fit", "none.csv", "--target", "price"], "fit: none.csv: No such file or directory\n"),
    (["predict", "none.npz", "d.csv"], "predict: none.npz: No such file or directory\n"),
    (["predict", "d.csv", "of classes.npz"], "MODEL must come before DATA: bbb-numpy predict"),
    (["predict", "d.csv", "d.csv"], "d.csv is damaged or not written by bbb_numpy: "),
    (["predict", "of classes.npz", "d.csv", "--keep", "mean"], "has no column 'mean'"),
    (["predict", "of classes.npz", "d.csv", "--keep", "entropy"], "the predictions have a column"),
    (["predict", "of an array.npz", "d.csv"], "was fitted without column names; use it from"),
    (["predict", "of classes.npz", "d.csv", "--interval", "0.8"], "probabilities and no interval"),
    (["gradcheck", "--layers", "3"], "sizes must be at least two whole numbers"),
    (["gradcheck", "--plain", "--activation", "tanh"], "one ReLU network; leave out --activation"),
    (["gradcheck", "--exact", "--method", "complex"], "leave out --method and --max"),
    (["gradcheck", "--all", "--layers", "3", "2", "--rho", "3"], "leave out --layers, --rho"),
    ([*EVALUATE, "kin"], "no column 'kin'; did you mean 'kind'?"),
    ([*EVALUATE, "kind", "--folds", "15"], "the class 'a' has 10 rows; 15 are needed"),
    ([*EVALUATE, "price", "--folds", "90"], "20 rows are too few; at least 90"),
    ([*EVALUATE, "same"], "the target 'same' is the same in all rows"),
    ([*EVALUATE, "price", "--json", "d.csv"], "would replace another file"),
    ([*FIT, "--inference", "ivon", "--learning-rate", "0.1"], "-rate, add --optimizer ivon"),
    ([*FIT, "--inference", "nuts", "--epochs", "9"], "does not use --epochs; leave out what is f"),
    ([*EVALUATE, "price", "--chains", "3"], "the default method does not use --chains; name a sam"),
]
CELLS = [
    (
        "x,y\n1,2\n2,-3\n3,1\n",
        ["--task", "counts"],
        "line 3, column 'y': '-3' is not a count; counts must be whole numbers >= 0",
    ),
    ("x,y\n1,2\n2,-3\n3,1\n", ["--likelihood", "poisson"], "column 'y': '-3' is not a count"),
    ("x,y\n1,2\n2,NA\n", ["--fill", "median"], "line 3, column 'y': a value of the target is miss"),
    ("x,y\n1,2\n,3\n", [], "line 3, column 'x': a value is missing; fill it in"),
    ("x,y\n1_0,2\n2,3\n3,4\n", [], "line 2, column 'x': '1_0' is not a number; correct the cell"),
    ("x,y\n" + "".join(f"person {k},{k}\n" for k in range(101)), [], "holds 101 different texts"),
]


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def command(words, message, text):
        (tmp_path / "d.csv").write_text(text)
        capsys.readouterr()
        files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert main(words) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert message in printed.err
        assert len(printed.err.splitlines()) == 1
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files

    return command


@pytest.mark.parametrize(("words", "message"), TYPED)
def test_what_is_typed_wrongly_is_answered_in_one_line(words, message, refused, tmp_path):
    if "predict" in words and "npz" in " ".join(words) and "none.npz" not in words:
        x = np.linspace(-1, 1, 20)[:, None]
        learner = BayesianMLPClassifier((3,), epochs=2, random_state=0).fit(x, x[:, 0] > 0)
        save(learner, tmp_path / "of an array.npz")
        learner.feature_names_in_ = np.array(["size"], object)
        save(learner, tmp_path / "of classes.npz")
    refused(words, message, HOUSES)


@pytest.mark.parametrize(("text", "words", "message"), CELLS)
def test_a_cell_that_cannot_be_used_is_named_by_line_and_column(text, words, message, refused):
    refused(["fit", "d.csv", "--target", "y", *words], message, text)


def test_all_complaints_of_a_file_are_said_at_once_each_with_its_first_place(tmp_path, capsys):
    """Missing values, numbers that are none, dates and the target."""
    lines = [f"{k},{k},2024-01-{k + 1},{k}" for k in range(9)]
    lines[3], lines[5], lines[7] = ",3,2024-01-03,3", "5,x1,2024-01-05,5", "7,7,2024-01-07,oops"
    path = tmp_path / "d.csv"
    path.write_text("\n".join(["a,b,day,y", *lines, ",x2,,"]))
    assert main(["fit", str(path), "--target", "y", "--model", str(tmp_path / "m.npz")]) == 2
    head, *complaints = capsys.readouterr().err.splitlines()
    assert head == "bbb-numpy fit: 4 columns cannot be used:"
    positions = [line.strip().split(":")[0] for line in complaints]
    assert positions == [
        *("d.csv, line 11, column 'y'", "d.csv, line 5, column 'a'"),
        *("d.csv, line 7, column 'b'", "d.csv, line 2, column 'day'"),
    ]


def test_what_a_learner_says_of_a_row_is_said_of_its_line_and_column(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "".join(f"{k},{k}\n" for k in range(20))
    (tmp_path / "d.csv").write_text("x,y\n" + text)
    assert main(["fit", "d.csv", "--target", "y", "--epochs", "1"]) == 0
    (tmp_path / "n.csv").write_text("x\n1\n\n1e305\n")
    assert main(["predict", "model.npz", "n.csv"]) == 2
    err = capsys.readouterr().err
    assert "at line 4" in err
    assert "(column 'x'; with" in err
    assert "row 1" not in err
