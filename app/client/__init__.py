"""A server's client for programs: `Client(url, token).push(...)`, by the standard library alone.

from app.client import Client

ledger = Client("https://chipledger.example.org", token)
pushed = ledger.push(["logs/"], name="night-run", chip="v5p", chips=4)
done = ledger.wait(pushed)
print(ledger.show(done.run_id, "mfu")["mfu"])
"""

from app.client.client import Client, Job, Pushed

__all__ = ["Client", "Job", "Pushed"]
