"""The agent: tools over real stores, and the loop that uses them."""
