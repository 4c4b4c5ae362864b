"""Commands that run side by side are all seen to their end."""

import subprocess
import sys

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
