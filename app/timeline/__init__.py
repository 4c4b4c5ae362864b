"""The timeline as a browser draws it: lanes as JSON, marks of a window as bytes, one event, and a search."""
