"""Files, addresses, processes and signals: what the operating system does for us, and to us."""
