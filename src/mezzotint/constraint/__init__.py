"""Constraints: text that keeps to a JSON Schema, a regular expression, a choice, or tool calls.

    grammar = json_schema({"type": "object", "properties": {"city": {"type": "string"}}})
    generate(model, prompt, grammar=grammar)

A Grammar knows no model; `Holes` holds one run to it, as an argument of the one loop.
"""

from mezzotint.constraint.grammar import Grammar, choice, json_schema, lines, regex, tools
from mezzotint.constraint.holes import Holes
from mezzotint.constraint.vocabulary import vocabulary

__all__ = ["Grammar", "Holes", "choice", "json_schema", "lines", "regex", "tools", "vocabulary"]
