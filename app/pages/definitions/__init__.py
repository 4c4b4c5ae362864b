"""Definitions: what each account and each mark means, from where the program itself takes them."""
