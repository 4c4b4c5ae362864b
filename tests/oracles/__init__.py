"""Answers held to figures that follow from elsewhere: a formula, a plain search by other code, or who published them.

The figures stand in these files, so that every clone checks them; `tests/interop/` checks more of them where the files
beside the project are. Each table says how its figures follow.
"""
