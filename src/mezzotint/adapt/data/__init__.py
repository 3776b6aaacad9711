"""The data of adaptation: grammars and corpora become samples, and held-out prompts to grade."""
