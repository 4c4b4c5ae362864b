"""What a run is: table schemas, the manifest, the store, the registry and the ledger."""
