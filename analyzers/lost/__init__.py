"""What was lost: goodput, interruptions, checkpoints, and how often jobs fail."""
