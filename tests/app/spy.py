"""What notes every name that a process looks up and every connection that it opens, but for those to itself."""

SPY = """
import os, sys
def hook(event, args):
    if event in ("socket.connect", "socket.sendto") and isinstance(args[1], tuple):
        host = str(args[1][0])
    elif event == "socket.getaddrinfo":
        host = str(args[0])
    else:
        return
    if host not in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "None", ""):
        with open(os.environ["SPY"], "a") as f:
            f.write(f"{event} {host}\\n")
sys.addaudithook(hook)
"""
