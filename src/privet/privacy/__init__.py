"""What is protected and what is promised: adjacency, sensitivity, events, guarantees, accounting, divergences."""
