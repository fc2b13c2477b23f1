"""What a sensor is.

A sensor never fails a measurement: what it cannot read it names in `missing`, with the reason and, where
there is one, the command that would change it.
"""

from typing import NamedTuple, Protocol


class Reading(NamedTuple):
    """One value of one device. A tuple rather than a dataclass since a big host gives thousands a second.

    Attributes:
        sensor: Name of the sensor, such as `gpu_power`.
        device: What was read: a GPU's UUID, `package-0`, `cpu3`, `all`, a process id.
        value: The value in `unit`.
        unit: `W`, `J`, `Hz`, `C`, `bytes`, `s`, `1` for fractions or `bits` for a mask.
    """

    sensor: str
    device: str
    value: float
    unit: str


class Sensor(Protocol):
    """Reads one kind of source. Opened and read in the same process, the sampler.

    Attributes:
        names: The sensors whose readings it gives.
        missing: Why a sensor (`gpu_energy`), or one device of it (`gpu_energy/GPU-...`), cannot be read.
        period_s: It is read no more often than this; 0 for every tick.
    """

    names: tuple[str, ...]
    missing: dict[str, str]
    period_s: float

    def open(self) -> None:
        """Finds the devices and fills `missing`. Never raises for what a host lacks."""

    def read(self) -> list[Reading]:
        """Reads every device once; one that fails is left out."""

    def close(self) -> None:
        """Gives back what `open` took. May be called twice."""
