"""What a ledger records: entries, the chain of hashes over them, and the state that follows from them."""
