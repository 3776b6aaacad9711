"""Requests to the agent, played on real stores and graded by the state that they leave."""
