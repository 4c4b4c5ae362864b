"""Alerts: what is watched for, what is open, and what was told."""
