"""Several runs beside one another: what differs between them, their curves, who is not beaten, how a series scales.

differing.py   settings and figures that are not the same in all; the others are counted
against.py     figures held against those of one run, the baseline
curves.py      a value of each step over step number, time or tokens, reduced to what a screen shows
front.py       runs that no other beats in two figures at once, and lines on which a product or quotient is the same
scaling.py     runs that differ in their chips alone: efficiency with its range, and which account eats it
"""
