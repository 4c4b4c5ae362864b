"""A report: what the pages tell of a run, or of two, as one file to hand on.

gathering   the answers that it is made of, asked as pages ask them: a report computes nothing of its own
sections/   from answers to parts of a document: one function each, listed in RUN, JOBS and SERVED
writers/    from a document to bytes, one file a format: HTML, Markdown, PDF
"""
