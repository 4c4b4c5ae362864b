"""The server: pages, HTTP API, uploads and jobs, behind one guard."""
