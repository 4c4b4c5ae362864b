"""Topology lab: which network do chips form, how far apart are they, how loaded, and what if a part fails?"""
