"""Says, before the tests run, what this machine lacks and how to get it. In CI a lack is an error."""

import os
import shutil
import sys

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    if any(shutil.which(name) for name in CHROMIUM):
        return 0
    print(
        "No Chromium found: browser tests will skip. On Debian and Ubuntu: apt-get install chromium; "
        "elsewhere install Chromium or Chrome so that one of these names is on the PATH: " + ", ".join(CHROMIUM),
        file=sys.stderr,
    )
    return 1 if os.environ.get("CI") else 0


if __name__ == "__main__":
    sys.exit(main())
