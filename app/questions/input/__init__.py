"""The run's input: is it bound by its input, or does it stall now and then, and what does that cost?"""
