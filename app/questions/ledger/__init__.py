"""The run's ledger: where did every chip-second go?"""
