"""How tools are asked about the cases: each makes the JSON that the scorer reads."""
