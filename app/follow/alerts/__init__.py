"""Alerts: thresholds on what the questions answer, told to a webhook once when crossed and once when over."""
