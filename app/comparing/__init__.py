"""Two runs compared: served ones request by request, jobs step by step."""
