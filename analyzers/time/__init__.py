"""Where the time went: the ledger, its calendar, steps and the history of a job."""
