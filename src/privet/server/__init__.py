"""The server: many analysts, one promise."""
