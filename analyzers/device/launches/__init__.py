"""What devices waited for while they were idle: calls that came late, launches that took long, gaps in between."""
