"""The run's traffic: how bursty is it, how long are prompts and answers, and would a Poisson model do?"""
