"""Programs that misbehave: what they say is bounded, and what they started ends with them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest

from bbb_course import processes
from bbb_course.processes import Ended, Process, printable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="programs of POSIX")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
FOR_EVER = "import time\nwhile True: time.sleep(1)\n"
# a child in a session of its own, whose number is told
CHILD = (
    "import os, subprocess, sys\n"
    "child = subprocess.Popen(['/bin/sleep', '600'], start_new_session=True, {})\n"
    "print(child.pid, flush=True)\n"
)
ORPHAN = (
    "import os, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        print(os.getpid(), flush=True)\n"
    "        while True: time.sleep(1)\n"
    "    os._exit(0)\n"
    "os.wait()\n"
)


def program(text, seconds=20.0):
    return Process([sys.executable, "-I", "-S", "-c", text], seconds, {})


def reason(text, seconds=20.0):
    """Return why a program ended before it said anything, and what it printed last."""
    with program(text, seconds) as process:
        with pytest.raises(Ended) as ended:
            process.receive()
        process.end()
    return str(ended.value), process.last_lines


def is_alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def has_ended_soon(pid):
    until = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_alive(pid)


def memory():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def test_a_program_is_spoken_to_line_by_line():
    with program("print(input() * 2)") as process:
        process.send(b"ab")
        assert process.receive() == b"abab\n"


@LINUX
def test_a_flood_of_what_is_no_line_is_read_to_one_megabyte(monkeypatch):
    before, most = memory(), 0

    def end(process, original=Process.end):
        nonlocal most
        most = max(most, memory())
        original(process)

    monkeypatch.setattr(Process, "end", end)
    why, _ = reason("import os\nfor _ in range(300): os.write(1, bytes(2**20))")
    assert why == "it writes more than 1 MB where its answer is read"
    assert most < before + 30 * 2**20


def test_a_flood_of_prints_is_called_so():
    why, last = reason("import sys\nwhile True: sys.stderr.write('a line of its own\\n' * 1000)")
    assert why == "it printed more than 10 MB: take its prints out"
    assert len(last) == 20
    assert last[0] == "a line of its own"


def stop_when_it_has_printed(process):
    """Do what the timer does, as soon as something was printed; return the thread that does it."""

    def stop():
        while not process.last_lines:
            time.sleep(0.01)
        process._stop_late()

    thread = Thread(target=stop)
    thread.start()
    return thread


def test_who_prints_until_its_time_is_out_is_told_how_much(monkeypatch):
    monkeypatch.setattr(processes, "START_ALLOWANCE_S", 0.0)
    monkeypatch.setattr(processes, "LARGE_OUTPUT_BYTES", 100)
    text = f"import sys\nsys.stderr.write('x' * 1234 + '\\n')\nsys.stderr.flush()\n{FOR_EVER}"
    with program(text) as process:
        thread = stop_when_it_has_printed(process)
        says = "it took more than 20 s and printed 1,235 bytes meanwhile"
        with pytest.raises(Ended, match=says):
            process.receive()
        thread.join()
    assert process.last_lines == ("x" * processes.MAX_LINE_LENGTH,)
    assert reason(FOR_EVER, 0.1) == ("it took more than 0.1 s: an endless loop?", ())


def test_what_a_terminal_would_obey_is_not_passed_on():
    assert printable("a\x1b[2Jb\rc\x07\u202ed é") == "a [2Jb c  d é"
    _, last = reason(r"import sys; sys.stderr.write('\x1b]0;title\x07')")
    assert last == (" ]0;title ",)


def test_the_signal_that_ended_it_is_named():
    why, _ = reason("import os; os.kill(os.getpid(), 11)")
    assert why == "its process ended by signal 11 before it was graded"


@LINUX
def test_a_program_inherits_three_descriptors_and_no_more():
    with program("import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))") as process:
        assert process.receive() in (b"[0, 1, 2]\n", b"[0, 1, 2, 3]\n")  # 3 reads the folder


@LINUX
@pytest.mark.parametrize(
    "text",
    [
        CHILD.format("env={}") + FOR_EVER,
        "import os; os.kill(os.getppid(), 9)\n" + CHILD.format("env=None") + FOR_EVER,
        ORPHAN + FOR_EVER,
        "import os; os.kill(os.getppid(), 9)\n" + ORPHAN,
    ],
)
def test_what_it_started_in_another_session_ends_with_it(text):
    with program(text) as process:
        pid = int(process.receive())
    assert has_ended_soon(pid)


# as CHILD, by hand: no guard, no parent, no mark, and both pipes held open
# It prints its number when the mark of the program is no longer in its environment
ESCAPED = (
    "import os, signal, sys, time\n"
    "os.kill(os.getppid(), signal.SIGKILL)\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        command = 'echo $$ >&2; exec /bin/sleep 30 2>&-'\n"
    "        os.execve('/bin/sh', ['sh', '-c', command], {})\n"
    "    os._exit(0)\n"
    "os.wait()\n"
)


@LINUX
def test_what_it_left_behind_ends_when_it_has_ended():
    """Its parent is the guard then: it has neither the session nor the mark of the program."""
    with program(CHILD.format("env={}, stdout=subprocess.DEVNULL")) as process:
        pid = int(process.receive())
        with pytest.raises(Ended):
            process.receive()
        assert has_ended_soon(pid)


@LINUX
def test_the_grader_does_not_wait_for_what_escaped():
    began = time.monotonic()
    with program(ESCAPED + FOR_EVER) as process:
        thread = stop_when_it_has_printed(process)
        process.send(bytes(10**6))  # which nobody reads
        with pytest.raises(Ended, match="it took more than 20 s"):
            process.receive()
        thread.join()
    assert time.monotonic() - began < 15
    escaped = int(process.last_lines[0])
    assert is_alive(escaped)  # as the page says
    os.kill(escaped, signal.SIGKILL)


@LINUX
def test_everything_ends_when_the_grader_closes_its_end():
    """As the system does for a grader that is killed."""
    with program(ORPHAN + FOR_EVER) as process:
        pid = int(process.receive())
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), process._lifeline)
        assert has_ended_soon(pid)


@LINUX
@pytest.mark.slow
def test_everything_ends_when_the_grader_is_killed():
    text = (
        "import sys\nfrom bbb_course.processes import Process\n"
        f"process = Process([sys.executable, '-c', {ORPHAN + FOR_EVER!r}], 60.0, {{}})\n"
        "print(process.receive().decode(), flush=True)\nprocess.receive()\n"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as grader:
        pid = int(grader.stdout.readline())
        grader.kill()
    assert has_ended_soon(pid)
