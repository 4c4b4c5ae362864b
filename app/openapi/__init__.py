"""The HTTP API as an OpenAPI 3.1 document, made of the records that the API itself is made of."""
