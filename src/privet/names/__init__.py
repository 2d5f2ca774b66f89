"""Names that people choose: look-alikes, and suggestions for misspelled names."""
