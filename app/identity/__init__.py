"""Who asks, and what they may: decided once, in the guard, before anything else sees a request."""
