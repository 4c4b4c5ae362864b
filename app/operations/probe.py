"""`python -m app.operations.probe [PORT]`: whether the server of this machine is ready, for a container's health check.

Prints a sentence and ends with 1 where it is not. Reads nothing of the project, so that it starts in no time.
"""

import http.client
import json
import sys

PORT, TIMEOUT_S = 8501, 8.0


def main(arguments: list[str]) -> int:
    port = int(arguments[0]) if arguments else PORT
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        asked.request("GET", "/readyz")
        answer = asked.getresponse()
        told = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as e:
        print(f"no answer at port {port} ({type(e).__name__})")
        return 1
    finally:
        asked.close()
    said = [f"{name}: {c['said']}" for name, c in told.get("checks", {}).items() if not c["ok"]]
    print(" ".join([str(told.get("status")), *said]))
    return 0 if answer.status == http.client.OK else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
