"""The library: how runs are listed, searched and kept in order, for pages, API, command line and agents alike."""
