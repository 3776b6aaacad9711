"""The user's rules: which tools may act unasked, which must ask, which never act.

[agent]                          # settings.toml of the workspace
allow = ["send_email"]           # not asked, where every value is in the user's own words
ask = ["lock_door"]              # asked, though it can be undone
never = ["delete_file"]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mezzotint.agent.tool import Effect, Tool
from mezzotint.errors import UsageError

_KEYS = ("allow", "ask", "never")


@dataclass(frozen=True, slots=True)
class Rules:
    """Names of tools. everything: whatever must be asked is allowed, as by --yes."""

    allow: frozenset[str] = frozenset()
    ask: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    everything: bool = False

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], known: Collection[str], everything: bool = False
    ) -> Rules:
        """From the table [agent]. Raises UsageError for an unknown key or tool."""
        for key, names in settings.items():
            if key not in _KEYS or not isinstance(names, list):
                raise UsageError(f"[agent] has {key!r}", f"it takes lists: {', '.join(_KEYS)}")
            if strange := sorted(set(names) - set(known)):
                raise UsageError(f"[agent] {key}: there is no tool {strange[0]!r}")
        lists = {key: frozenset(settings.get(key, ())) for key in _KEYS}
        return cls(**lists, everything=everything)

    def asks(self, tool: Tool) -> bool:
        return tool.effect is Effect.IRREVERSIBLE or tool.name in self.ask

    def allows(self, tool: Tool) -> bool:
        """Whether the user need not be asked, if the values are the user's own."""
        return tool.name not in self.ask and (self.everything or tool.name in self.allow)
