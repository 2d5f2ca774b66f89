"""Assistants: language models ask private data through the Model Context Protocol (`privet mcp`)."""
