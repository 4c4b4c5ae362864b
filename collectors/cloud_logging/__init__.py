"""Cloud Logging as a source: a job's goodput entries fetched into a file, each once, however often it is asked.

    query.py     which entries are a job's, in the words of the Logging query language
    pace.py      the quota that all jobs of a project share, and patience with a service that refuses or drops
    service.py   the connection: credentials, pages of entries, and what is wrong in a sentence
    spool.py     the entries on disk: appended, synced, each once, whole after a kill at any moment
    fetch.py     back-fill in windows, then what is new and what came late

It is no file format, so it is not among `COLLECTORS`: what it writes is read by `collectors.training.goodput_log`.
"""
