"""Published runs: how well others use their chips, by which count; and the user's run among its likes."""
