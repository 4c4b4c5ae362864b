"""The timeline of a run with many events, made by the workers of an engine (`runs/spread`), task by task.

put down    each task some of the run's events, or what the ledger books of some devices
placed      each some lanes, of as many events, taken from what all tasks put down
summed      each the levels of the lanes that it placed
joined      here: columns are put behind one another, and their first rows and events counted on

What a task gives depends on what it is asked alone, and all of it lies below `partial/` of the store until the last of
it is there. The bytes are those that one process writes.
"""
