"""The load that a server bears: where is the knee, what does speed cost, and is the run in a steady state?"""
