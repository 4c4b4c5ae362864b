"""How the log of a server is written, for the command line and for whoever writes it."""

LOG_VARIABLE = "CHIPLEDGER_LOG"
TEXT, AS_JSON = "text", "json"
KINDS = (TEXT, AS_JSON)
