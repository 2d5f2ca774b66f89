"""The theory: adjacency, sensitivity, events, guarantees, accounting, divergences."""
