"""Plain charts as SVG text: axes, lines, dots with intervals, bars. Knows numbers and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH, HEIGHT = 680, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 120, 14, 44
INK, FAINT = "#1d2733", "#dde3ea"


@dataclass(frozen=True, slots=True)
class Axis:
    """label: with its unit. log: base 2, for values above 0. ticks: where; none are chosen."""

    label: str
    low: float
    high: float
    log: bool = False
    ticks: tuple[float, ...] = ()

    def place(self, value: float) -> float:
        """0 at low, 1 at high."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        return (self._scaled(value) - low) / ((high - low) or 1.0)

    def _scaled(self, value: float) -> float:
        return math.log2(max(value, 1e-9)) if self.log else value

    def marks(self) -> tuple[float, ...]:
        if self.ticks:
            return self.ticks
        if self.log:
            low, high = math.floor(math.log2(self.low)), math.ceil(math.log2(self.high))
            powers = (2.0**n for n in range(low, high + 1))
            return tuple(m for m in powers if self.low <= m <= self.high)
        step = _step((self.high - self.low) / 5)
        first = math.ceil(self.low / step)
        return tuple(n * step for n in range(first, int(self.high / step + 1e-9) + 1))


def axis(label: str, values: Sequence[float], log: bool = False, zero: bool = False) -> Axis:
    """One that holds the values with a little room; zero: it begins at 0."""
    low, high = min(values), max(values)
    if log:
        return Axis(label, low / 1.15, high * 1.15, True)
    room = 0.06 * ((high - low) or abs(high) or 1.0)
    return Axis(label, 0.0 if zero else low - room, high + room)


def _step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, not below `rough`."""
    power = 10.0 ** math.floor(math.log10(rough or 1.0))
    return next(n * power for n in (1, 2, 5, 10) if n * power >= rough * 0.999)


@dataclass
class Chart:
    """Draw on it, then `svg()`."""

    x: Axis
    y: Axis
    title: str
    _parts: list[str] = field(default_factory=list)
    _labels: list[tuple[float, float, str, str]] = field(default_factory=list)

    def line(
        self, points: Sequence[tuple[float, float]], colour: str, label: str = "", dash: str = ""
    ) -> None:
        """dash: SVG's pattern of it. The label stands at the last point."""
        if not points:
            return
        at = " ".join("{:.1f},{:.1f}".format(*self._at(*point)) for point in points)
        style = f'fill="none" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"'
        self._parts.append(f'<polyline points="{at}" {style}/>')
        self._label(*points[-1], label, colour)

    def dot(
        self, x: float, y: float, colour: str, label: str = "", hollow: bool = False,
        span: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        """span: the interval of y around it."""
        px, py = self._at(x, y)
        if span:
            ends = [self._at(x, value)[1] for value in span]
            self._parts.append(
                f'<line x1="{px:.1f}" x2="{px:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}"'
                f' stroke="{colour}" stroke-opacity=".45"/>'
            )
        fill = "#fff" if hollow else colour
        self._parts.append(
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="{fill}" stroke="{colour}"'
            f' stroke-width="1.6"><title>{escape(label)}: {x:.4g}, {y:.4g}</title></circle>'
        )
        self._label(x, y, label, colour)

    def rule(self, y: float, label: str) -> None:
        """A dashed line across."""
        ends = [(self.x.low, y), (self.x.high, y)]
        self.line(ends, "#7a8794", label, "4 4")

    def svg(self) -> str:
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.title)}">'
            f"{self._frame()}{''.join(self._parts)}{self._text()}</svg>"
        )

    def _at(self, x: float, y: float) -> tuple[float, float]:
        wide, high = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
        return _LEFT + self.x.place(x) * wide, HEIGHT - _BOTTOM - self.y.place(y) * high

    def _label(self, x: float, y: float, label: str, colour: str) -> None:
        if label:
            self._labels.append((*self._at(x, y), label, colour))

    def _text(self) -> str:
        """Labels right of their points, moved apart where they would lie on each other."""
        placed: list[tuple[float, float]] = []
        out = []
        for x, y, label, colour in sorted(self._labels, key=lambda one: one[1]):
            while any(abs(y - other) < 11 and abs(x - beside) < 110 for beside, other in placed):
                y += 3
            placed.append((x, y))
            out.append(
                f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="{colour}">{escape(label)}</text>'
            )
        return "".join(out)

    def _frame(self) -> str:
        right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
        parts = []
        for mark in self.y.marks():
            y = self._at(self.x.low, mark)[1]
            parts += [_rule(_LEFT, right, y, y), _word(_LEFT - 6, y + 4, f"{mark:g}", "end")]
        for mark in self.x.marks():
            x = self._at(mark, self.y.low)[0]
            parts += [_rule(x, x, _TOP, bottom), _word(x, bottom + 15, f"{mark:g}")]
        parts.append(_word((_LEFT + right) / 2, HEIGHT - 8, self.x.label))
        parts.append(_word(14, (_TOP + bottom) / 2, self.y.label, turned=True))
        return "".join(parts)


def _rule(x1: float, x2: float, y1: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{FAINT}"/>'


def _word(x: float, y: float, text: str, anchor: str = "middle", turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x} {y})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{escape(text)}</text>'


def stacked(
    rows: Sequence[tuple[str, Sequence[float]]], parts: Sequence[tuple[str, str]], unit: str
) -> str:
    """Bars, one a row, each of the parts (name, colour) in order; lengths in `unit`."""
    most = max((sum(values) for _, values in rows), default=0.0) or 1.0
    left, wide, high = 130, WIDTH - 130 - 90, 20
    out = []
    for number, (name, values) in enumerate(rows):
        y, x = 24 + number * high, float(left)
        out.append(_word(left - 8, y + 12, name, "end"))
        for (part, colour), value in zip(parts, values, strict=True):
            length = wide * value / most
            out.append(
                f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{high - 5}"'
                f' fill="{colour}"><title>{escape(part)}: {value:.1f} {unit}</title></rect>'
            )
            x += length
        out.append(_word(x + 6, y + 12, f"{sum(values):.0f} {unit}", "start"))
    keys, x = [], left
    for part, colour in parts:
        keys.append(f'<rect x="{x}" y="4" width="11" height="11" fill="{colour}"/>')
        keys.append(_word(x + 16, 14, part, "start"))
        x += 30 + 7 * len(part)
    whole = 30 + len(rows) * high
    return f'<svg viewBox="0 0 {WIDTH} {whole}" role="img">{"".join(keys)}{"".join(out)}</svg>'
