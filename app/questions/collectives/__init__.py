"""The run's collectives: which ran over which axis, how fast were they, and what bounds them?"""
