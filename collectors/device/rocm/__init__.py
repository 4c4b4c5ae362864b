"""What AMD's profilers write, as the same tables as a trace of PyTorch: a file a format, over one way of filling them.

`rocpd`: databases of rocprofv3 since ROCm 7. `rpd`: those of rocmProfileData. `rocprofv3`: its JSON, and its other
files, which are refused by name. `rpd_json`: what rpd2tracing makes of an `.rpd` for a viewer.
"""
