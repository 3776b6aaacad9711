"""Built-in tools, a store a file."""
