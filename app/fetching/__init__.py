"""Files by address: folders, files and globs of this machine, and buckets through fsspec where its package is there."""
