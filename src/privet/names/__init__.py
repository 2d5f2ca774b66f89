"""Names that people choose: look-alikes, and what a misspelled one was meant to be."""
