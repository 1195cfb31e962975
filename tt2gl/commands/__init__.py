"""The commands: their options, and what each does with what the stages return."""
