"""A simulated car: climate, windows, doors, seats, charge. Its state is car/state.json."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mezzotint.agent.packs.devices import Device, Devices, State
from mezzotint.agent.tool import Context, Effect, Outcome, Tool
from mezzotint.agent.when import Clock
from mezzotint.agent.workspace import Workspace

STATE = "car/state.json"

Percent = Annotated[int, Field(ge=0, le=100)]
Degrees = Annotated[int, Field(ge=16, le=30)]
Seat = Literal["driver", "passenger", "rear"]
Window = Literal["driver", "passenger", "rear", "all"]
Level = Literal["low", "medium", "high"]


def tools(workspace: Workspace) -> list[Tool]:
    car = _Car(Devices(workspace, STATE))
    writing = (
        car.set_car_temperature,
        car.car_window,
        car.seat_heating,
        car.lock_car,
        car.charge_car,
    )
    return [
        *(Tool.of(function, Effect.WRITES) for function in writing),
        Tool.of(car.check_tires, Effect.READS),
        Tool.of(car.car_status, Effect.READS),
    ]


class _Car:
    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def set_car_temperature(
        self, degrees: Degrees, seat: Seat | None = None, *, context: Context
    ) -> Outcome:
        """Set the temperature in the car.

        degrees: in degrees Celsius
        """
        state: State = {"on": True, "temperature": degrees}
        return self._devices.change(self._of("climate", seat), state, context)

    def car_window(self, window: Window, percent: Percent, *, context: Context) -> Outcome:
        """Open a car window by a percentage; 0 closes it."""
        found = self._of("window", None if window == "all" else window)
        return self._devices.change(found, {"position": percent}, context)

    def seat_heating(self, position: Seat, heat: Level, *, context: Context) -> Outcome:
        """Set the seat heating level."""
        return self._devices.change(self._of("seat", position), {"heating": heat}, context)

    def lock_car(self, locked: bool, *, context: Context) -> Outcome:
        """Lock or unlock the car; locked is true to lock."""
        return self._devices.change(self._of("doors"), {"locked": locked}, context)

    def charge_car(
        self, limit: Percent, start: Clock | None = None, *, context: Context
    ) -> Outcome:
        """Charge the car up to a percentage."""
        later = f"{start:%H:%M}" if start else ""
        state: State = {"charging": not later, "limit": limit, "start": later}
        return self._devices.change(self._of("battery"), state, context)

    def check_tires(self, *, context: Context) -> Outcome:
        """Read the tire pressure."""
        return self._devices.tell(self._of("tire"), context)

    def car_status(self, *, context: Context) -> Outcome:
        """Tell the state of the car: charge, doors, windows, climate."""
        found = [d for d in self._devices.all() if d.kind not in ("tire", "seat")]
        return self._devices.tell(found, context)

    def _of(self, kind: str, name: str | None = None) -> list[Device]:
        """The devices of a kind; `name` is the first word of theirs."""
        found = [d for d in self._devices.all() if d.kind == kind]
        return [d for d in found if name is None or d.name.split()[0] == name]
