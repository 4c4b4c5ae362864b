"""What follows a job that still runs: logs read on, engines polled, alerts told."""
