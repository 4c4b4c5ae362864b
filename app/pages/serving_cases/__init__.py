"""Serving cases: published figures worked through, measured beside modelled."""
