"""Serving planner: which setup serves a traffic cheapest within its objectives, and why each of the others loses."""
