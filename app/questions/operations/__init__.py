"""The run's top operations: which take the devices' time, from which line, and how near are they to their roof?"""
