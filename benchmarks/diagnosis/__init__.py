"""An open benchmark of diagnosis: real runs with planted faults, their truth, and a scorer for any tool's answer."""
