"""Topology lab."""
