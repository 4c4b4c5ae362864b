"""What feeds a training step from storage: how long a batch takes to read, who waits for it, and what would mend it.

pipe.py    what is read on what: batch, files, readers, latency, bandwidths, decoding, prefetch; what each alone allows
waiting.py how long steps wait for their input, walked event by event (kernel.py)
needed.py  the least of readers, of prefetch and of file size at which nobody waits
epoch.py   the whole of a data set: listing it, and reading it in files of one size or another
fit.py     a latency and a bandwidth fitted to published measurements, with their error on rows left out
"""
