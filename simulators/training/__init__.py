"""Training jobs that do not exist yet: their days and dollars at a rate, and at which rates such jobs ran."""
