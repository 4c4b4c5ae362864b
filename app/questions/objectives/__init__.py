"""The run's objectives (SLO): which requests came in time, and why not the others?"""
