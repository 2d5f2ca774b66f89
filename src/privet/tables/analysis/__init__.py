"""What follows from a declaration and a query alone: which conditions can be true, and which groups can have rows."""
