"""The devices' time by the parts of the model: `modules.py` answers, the others make the tree."""
