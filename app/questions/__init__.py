"""Questions about a run: one package each."""
