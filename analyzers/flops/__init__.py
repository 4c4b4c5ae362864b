"""FLOPs: which were the model's, which were padding, and against which peak."""
