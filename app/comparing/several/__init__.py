"""Several runs beside one another, for page, command, API and agents alike."""
