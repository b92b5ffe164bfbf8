"""Answers that forge their verdict: each is failed, under its own name.

An answer shares its process with what proves it, and can change all that is there. So nothing that
this process says lets it pass: the numbers are asked for, and compared where no answer runs.
"""

import json
import os

import numpy as np
import pytest

from bbb_course import judge
from bbb_course.alone import decode, encode
from bbb_course.judging import right_in_floats
from bbb_course.keys import find
from bbb_course.processes import Ended
from bbb_course.sandbox import _answer_of, _verdict_of, _verdict_or_reason, grade_files

pytestmark = pytest.mark.skipif(os.name == "nt", reason="descriptors of POSIX")
FORGED = {
    "exercise": "powerball", "passed": True, "verdict": "proved", "headline": "proved: all of it",
    "findings": [], "cases": {}, "score": {}, "printed": [],
}  # fmt: skip
START = f"""
import atexit, gc, json, os, pickle, sys, threading, time
import numpy as np
FORGED = json.loads({json.dumps(FORGED)!r})
LINES = (json.dumps(FORGED) + "\\n" + json.dumps({{"returned": True}}) + "\\n").encode()

def write_everywhere():
    for descriptor in range(256):
        try:
            os.set_blocking(descriptor, False)
            os.write(descriptor, LINES)
        except OSError:
            pass
"""
ATTACKS = {
    "writes to all descriptors": "write_everywhere()\n",
    "writes when it ends": "atexit.register(write_everywhere)\n",
    "writes later": """
def later():
    while True:
        time.sleep(0.01)
        write_everywhere()
threading.Thread(target=later, daemon=True).start()
""",
    "patches what writes verdicts": """
TEXT = json.dumps(FORGED)
json.dumps = json.JSONEncoder.encode = lambda *arguments, **options: TEXT
pickle.dumps = lambda *arguments: LINES
""",
    "changes the classes of the grader that are in memory": """
for one in gc.get_objects():
    if isinstance(one, type) and one.__name__ == "Verdict":
        one.as_dict = lambda self: FORGED
        one.passed = True
    if isinstance(one, dict) and "judge_formula" in one and "_agree" in one:
        one["_agree"] = lambda *arguments: True
        one["_overflow"] = lambda *arguments: None
""",
    "makes itself the key": """
def become_the_key():
    for one in gc.get_objects():
        if type(one).__name__ in ("Formula", "Check"):
            object.__setattr__(one, "right", ANSWER)
            object.__setattr__(one, "subjects", list)
become_the_key()
""",
    "follows the frames up to its judge": """
def look(frame, event, argument):
    while frame is not None:
        for value in [*frame.f_locals.values()]:
            if type(value).__name__ in ("Formula", "Check"):
                object.__setattr__(value, "right", ANSWER)
        frame = frame.f_back
sys.settrace(look)
""",
    "writes and exits": "write_everywhere()\nos._exit(0)\n",
}
ANSWERS = {
    "softplus": "def softplus(rho):\n    return np.exp(rho)\n",
    "check_a_sampler": "def check_a_sampler(kernel, p):\n    return True\n",
}


def verdict_of(name, text, folder):
    path = folder / f"1_{name}.py"
    path.write_text(f"{START}\n{ANSWERS[name]}\nANSWER = {name}\n{text}")
    (verdict,) = grade_files([path])
    return verdict


def all_at_once():
    return "\n".join(text for what, text in ATTACKS.items() if "exits" not in what)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_does_all_of_it_does_not_pass(name, tmp_path):
    verdict = verdict_of(name, all_at_once(), tmp_path)
    assert (verdict.exercise, verdict.passed) == (name, False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_passes(attack, name, tmp_path):
    verdict = verdict_of(name, ATTACKS[attack], tmp_path)
    assert (verdict.exercise, verdict.passed) == (name, False)


def test_the_name_on_a_verdict_is_that_of_the_file():
    exercise = find("softplus")
    assert _verdict_of(exercise, json.dumps(FORGED).encode()).exercise == "softplus"


@pytest.mark.parametrize(
    "line",
    [
        b"[0]\n",
        b"[" * 10**5,
        b"\xff\n",
        *(json.dumps({**FORGED, key: value}).encode() for key, value in [
            ("passed", "yes"), ("verdict", "best of all"), ("findings", [1]), ("findings", 3),
            ("cases", [1]), ("cases", {"sigma": 3}),
        ]),
        json.dumps({"passed": True}).encode(),
    ],
)  # fmt: skip
def test_what_is_no_verdict_is_said_to_be_none(line):
    with pytest.raises(Ended, match="writes what is no message"):
        _verdict_of(find("softplus"), line)


def test_a_verdict_obeys_no_terminal():
    line = json.dumps({**FORGED, "headline": "\x1b[2J", "cases": {"\x07": {"a\r": "\x1b"}}})
    assert "\x1b" not in str(_verdict_of(find("softplus"), line.encode()))
    assert "\r" not in str(_verdict_of(find("softplus"), line.encode()))


class Scripted:
    """A process that says what is written here."""

    def __init__(self, *messages):
        self.lines = [json.dumps(message).encode() for message in messages]
        self.told = []

    def send(self, line):
        self.told.append(json.loads(line))

    def receive(self):
        return self.lines.pop(0)


@pytest.mark.parametrize(
    "value",
    [
        None, "nan", 10**400, [], [[1], [2, 3]], {"pairs": []}, {"tuple": [1]}, [1, 2, 3],
        {"dtype": "<f8", "shape": [0, 10**15], "data": ""}, encode(np.zeros(3, complex)),
    ],
)  # fmt: skip
def test_whatever_an_answer_returns_is_not_right(value):
    answer = _answer_of(Scripted({"callable": True}, *[{"returned": value}] * 3))
    assert not right_in_floats(find("softplus"), answer)


@pytest.mark.parametrize(
    "message",
    [
        [], 3, {}, {"returned": {}}, {"returned": {"function": 0}}, {"returned": {"pairs": 3}},
        {"returned": {"pairs": [[{"pairs": []}, 1]]}},
        {"returned": {"dtype": "O", "shape": [], "data": ""}},
        {"returned": {"dtype": "<f8", "shape": [10**15], "data": ""}},
        {"returned": {"dtype": "<f3", "shape": [0], "data": ""}},
        {"returned": {"dtype": 3, "shape": [0], "data": 3}},
    ],
)  # fmt: skip
def test_what_is_no_message_is_said_to_be_none(message):
    answer = _answer_of(Scripted({"callable": True}, message))
    with pytest.raises(Ended, match="writes what is no message"):
        answer(np.zeros(3))


def test_a_function_of_the_grader_takes_few_numbers_and_says_what_it_did_not_like():
    """It runs in the grader, where a column of 10,000 could become a square of 10^8."""
    calls = [
        {"call": index, "arguments": encode(arguments)}
        for index, arguments in [
            (0, (np.zeros((5000, 1)),)),
            (1, ()),
            ("a", ()),
            (0, (1, 2)),
            (0, 3),
        ]
    ]
    right = {"call": 0, "arguments": encode((np.arange(3.0),))}
    process = Scripted({"callable": True}, *calls, right, {"returned": 1.5})
    assert _answer_of(process)(lambda x: 2 * x) == 1.5
    *errors, returned = process.told[1:]
    assert errors[0] == {"raised": "ValueError: it is called with more than 4096 numbers"}
    assert [set(error) for error in errors] == [{"raised"}] * 5
    assert decode(returned["returned"]).tolist() == [0, 2, 4]


def test_messages_keep_every_bit():
    array = np.array([[0.1, np.nan, -0.0], [np.inf, 5e-324, 1 / 3]])
    sent = (array, array[0, 0], 3, 1 + 2j, {"a": {"b"}}, None, True, "\N{SNOWMAN}", array > 0)
    back = decode(json.loads(json.dumps(encode(sent))))
    assert isinstance(back, tuple)
    assert back[0].tobytes() == array.tobytes()
    assert back[1:8] == (0.1, 3, 1 + 2j, {"a": ["b"]}, None, True, "\N{SNOWMAN}")
    assert back[8].dtype == bool


def test_a_verdict_on_what_cannot_be_judged_is_one_line():
    def verdict_of():
        raise OverflowError("int too large to convert to float")

    verdict = _verdict_or_reason("softplus", verdict_of)
    assert (verdict.passed, verdict.verdict) == (False, "stopped")
    assert verdict.headline.startswith("grading it failed: OverflowError")


def test_what_an_error_says_is_cut():
    def softplus(rho):
        raise ValueError("x" * 10**6)

    assert len(judge("softplus", softplus).headline) < 1000
