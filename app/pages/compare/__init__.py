"""A or B: is one served run truly faster than another, or is the difference chance?"""
