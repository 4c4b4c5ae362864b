"""The texts that create a slice: for GKE, XPK and queued resources."""
