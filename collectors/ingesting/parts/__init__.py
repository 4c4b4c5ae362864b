"""A run in parts: of many files each is read, and its rows written, by a worker of an engine (`runs/spread`).

What a file's rows are depends on its bytes, its name and its number in the run alone. So several workers can write them
where the run is being made, and whoever asked learns of each file only what it says of the run as a whole.
"""
