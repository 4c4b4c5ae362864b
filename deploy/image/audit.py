"""`python deploy/image/audit.py PIP-AUDIT LOCK`: what is known against the parts that a lock names.

Exit code 0: nothing is known; 3: something is, and is told; 4: nobody could be asked, as without the internet.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TIMEOUT_S = 600


def known(report: dict[str, Any]) -> list[str]:
    """A line for each vulnerability: part, version, its name, and what mends it."""
    lines = []
    for part in report["dependencies"]:
        for one in part.get("vulns", ()):
            mended = ", ".join(one.get("fix_versions", ())) or "no version yet"
            lines.append(f"{part['name']} {part['version']}: {one['id']}, mended in {mended}")
    return lines


def main(tool: str, lock: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "report.json"
        asked = [tool, "--disable-pip", "--require-hashes", "-r", lock, "--format", "json", "--output", str(told)]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, timeout=TIMEOUT_S)
            report = json.loads(told.read_text()) if told.is_file() else None
        except (OSError, ValueError, subprocess.TimeoutExpired) as e:
            done, report = None, None
            print(f"error: {type(e).__name__}", file=sys.stderr)
    if report is None:
        why = (done.stderr.strip().splitlines() or [""])[-1][:200] if done else ""
        print(f"The dependencies were not audited: nobody could be asked. {why}".strip())
        return 4
    lines = known(report)
    count = len(report["dependencies"])
    parts = f"{count} part{'' if count == 1 else 's'}"
    print("\n".join(lines) or f"Nothing is known against the {parts} of {lock}.")
    return 3 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
