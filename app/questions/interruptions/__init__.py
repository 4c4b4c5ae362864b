"""The run's interruptions: what stopped it, how often, what did each cost, and is a host to blame?"""
