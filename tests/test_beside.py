"""Commands that run side by side, and those that run one after another beside the first, are all seen to their end."""

import signal
import subprocess
import sys
import time

import pytest


def beside(*codes: str) -> subprocess.CompletedProcess:
    commands = [f'{sys.executable} -c "{code}"' for code in codes]
    return subprocess.run([sys.executable, "-m", "tests.beside", *commands], capture_output=True, text=True, timeout=60)


def test_what_all_said_is_shown_in_order_though_the_first_ends_last():
    done = beside("import time; time.sleep(0.5); print(1)", "print(2)", "print(3)")
    assert done.stdout.split() == ["1", "2", "3"] and done.returncode == 0


@pytest.mark.parametrize("failing", range(3))
def test_whichever_fails_all_fails_and_the_rest_is_shown(failing):
    codes = [f"print({n}); raise SystemExit({int(n == failing)})" for n in range(3)]
    done = beside(*codes)
    assert done.stdout.split() == ["0", "1", "2"] and done.returncode == 1


def test_the_others_run_one_after_another_beside_the_first(tmp_path):
    ended, looked = tmp_path / "ended", tmp_path / "looked"
    second = f"import os, time\nwhile not os.path.exists({str(looked)!r}): time.sleep(0.02)\nopen({str(ended)!r}, 'w')"
    third = f"import os; print(os.path.exists({str(ended)!r}))"
    first = f"import os; print(os.path.exists({str(ended)!r})); open({str(looked)!r}, 'w')"
    assert beside(first, second, third).stdout.split() == ["False", "True"]


def test_interrupted_it_leaves_nothing_running(tmp_path):
    started = tmp_path / "started"
    waits = f"open({str(started)!r}, 'w'); import time; time.sleep(500)"
    commands = [f'{sys.executable} -c "import time; time.sleep(500)"', f'{sys.executable} -c "{waits}"']
    running = subprocess.Popen([sys.executable, "-m", "tests.beside", *commands], stderr=subprocess.DEVNULL)
    while not started.exists():
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) != 0
