"""The server: OpenAI's API, ours, and a page, over one worker that owns the model."""
