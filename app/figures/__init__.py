"""Figures: pure functions from a result to a plotly figure. Text from inputs is escaped by `plain`."""
