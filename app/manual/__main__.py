"""`python -m app.manual` builds the site of the docs anew (`make run` and `make test` do where its sources changed)."""

import sys

from app.manual.site_files import build

if __name__ == "__main__":
    sys.exit(build())
