"""Checkpoints: how often does a job save, how often should it, and what would each cure give back?"""
