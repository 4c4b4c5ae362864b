"""MFU: which share of the chips' peak became useful maths, in which steps, and by whose count?"""
