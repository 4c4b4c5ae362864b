"""The run's latency: how long did requests wait, for what, and at which throughput?"""
