"""The handlers, one file a noun: each takes what was parsed, makes one call of a use case, and shows the outcome."""
