"""One seam for work that is done file by file, here or on other machines: `engine.Engine.map`.

A piece of work is a function that is named (`package.module:function`) and what it is asked, a `Task`. It is told by
its content (`Task.key`): done twice it gives the same, so that a worker that is lost costs its task alone. Two engines
do it with the same code and the same results: processes of this machine (`processes.py`) and Dask (`cluster.py`).
"""
