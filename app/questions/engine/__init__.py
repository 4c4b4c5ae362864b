"""The engine of a serving run: what did it run, queue and keep over time, and what limited it?"""
