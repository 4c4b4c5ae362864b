"""The fleet: many runs over time, for pages, commands, API and agents alike; budgets and the weekly digest."""
