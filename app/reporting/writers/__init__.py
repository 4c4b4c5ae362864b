"""From a document to a file: one format each."""
