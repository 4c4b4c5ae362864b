"""What readers of every format share: lines, documents, streams of JSON, dates, encodings, causes."""
