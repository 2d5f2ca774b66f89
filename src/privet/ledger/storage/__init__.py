"""How a ledger is stored: its tables (`tables`, `book`), and durable transactions on them (`database`)."""
