"""Energy and CO2e of inference, by codecarbon, with the source of every figure."""

from __future__ import annotations

import importlib.metadata
import logging
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.errors import UsageError, suggest
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.meters.options import with_defaults
from benchmarks.records import DataUsed, Value

if TYPE_CHECKING:
    from benchmarks.data.batches import AnyBatch

EnergySource = Literal["meter", "nvml", "rapl", "model", "constant"]

DEFAULTS = {"country": "", "window_s": 2.0, "batch_size": 32, "n_inputs": 1024, "n_processes": 1}
JOULES_PER_KWH = 3.6e6

_SOURCES: dict[str, EnergySource] = {
    "intel_rapl": "rapl",
    "windows_emi": "rapl",
    "intel_power_gadget": "meter",
    "apple_powermetrics": "meter",
    "constant": "constant",
    "cpu_load": "model",
}


class Carbon:
    """The carbon meter: a pass of its own, so that watching the energy disturbs no timing.

    Options: `country` (ISO 3166 alpha-3; empty: world average, which the record names), `window_s`
    (least seconds of inference), `batch_size`, `n_inputs` (test inputs used at most, spread evenly
    over the split), `n_processes`.
    """

    def __init__(self, tracker: Any = None) -> None:
        self._tracker = tracker

    def sample(
        self,
        items: Sequence[tuple[Subject, Subject | None]],
        replicate: int,
        options: Mapping[str, Any],
    ) -> list[dict[str, Any]]:
        """Runs inference on each point for at least the window; see `ReplicatedMeter`.

        Raises:
            UsageError: codecarbon has no figure for the country.
        """
        del replicate
        chosen = with_defaults("carbon", options, DEFAULTS)
        factor = grid_factor(str(chosen["country"]))
        if self._tracker is None:
            self._tracker = _start_tracker(factor["g_per_kwh"])
        return [self._one(subject, chosen, factor) for subject, _ in items]

    def _one(
        self, subject: Subject, options: Mapping[str, Any], factor: Mapping[str, Any]
    ) -> dict[str, Any]:
        import torch

        from benchmarks.meters.inputs import data_used

        batches = _batches(subject, options["batch_size"], options["n_inputs"])
        model = subject.model

        @torch.inference_mode()
        def one_pass() -> None:
            for batch in batches:
                model(*batch.inputs)

        one_pass()
        with warnings.catch_warnings(action="ignore"):
            self._tracker.start_task()
        passes, seconds = repeat_for(one_pass, options["window_s"])
        with warnings.catch_warnings(action="ignore"):
            used = self._tracker.stop_task()
        return {
            "n": passes * sum(map(len, batches)),
            "seconds": seconds,
            # the models run on the CPU: an idle graphics card beside it is not theirs
            "cpu_j": used.cpu_energy * JOULES_PER_KWH,
            "ram_j": used.ram_energy * JOULES_PER_KWH,
            "energy_source": energy_source(self._tracker),
            "codecarbon": importlib.metadata.version("codecarbon"),
            "factor": dict(factor),
            "data": data_used(subject.data).model_dump(),
        }

    def combine(
        self, samples: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> Measurement:
        """One measurement of one point.

        Returns:
            energy (J), emissions (gCO2e) and seconds (s) per 1000 inputs, and power (W), the mean
            over the window; `info` names the source of the energy and of the grid factor.
        """
        del options
        first = samples[0]
        n = sum(sample["n"] for sample in samples)
        joules = sum(sample["cpu_j"] + sample["ram_j"] for sample in samples)
        seconds = sum(sample["seconds"] for sample in samples)
        grams = joules / JOULES_PER_KWH * first["factor"]["g_per_kwh"]
        per_1000 = {
            "energy": ("J", joules),
            "emissions": ("gCO2e", grams),
            "seconds": ("s", seconds),
        }
        values = [
            Value(name=name, value=total / n * 1000, unit=unit, n=n, context={"per_inputs": 1000})
            for name, (unit, total) in per_1000.items()
        ]
        values.append(Value(name="power", value=joules / seconds, unit="W"))
        source = first["energy_source"]
        notes = []
        if source in ("model", "constant"):
            notes.append(
                "energy is modelled, not metered: it restates time and ranks no two models"
            )
        return Measurement(
            values=values,
            data=DataUsed.model_validate(first["data"]),
            info={
                "energy_source": source,
                "codecarbon": first["codecarbon"],
                "grid": first["factor"],
                "ram_share": statistics.fmean(
                    sample["ram_j"] / (sample["cpu_j"] + sample["ram_j"]) for sample in samples
                ),
                "window_s": seconds,
                "tracking_mode": "process",
            },
            warnings=notes,
        )


def grid_factor(country: str) -> dict[str, Any]:
    """Grams of CO2e per kWh from codecarbon's own tables, without asking anyone over the network.

    Args:
        country: ISO 3166 alpha-3 code; empty for the world average.

    Returns:
        country (or "world average"), g_per_kwh and source.

    Raises:
        UsageError: codecarbon has no figure for this country (where it would quietly take the
            world's).
    """
    with warnings.catch_warnings(action="ignore"):
        from codecarbon.core.emissions import Emissions
        from codecarbon.core.units import Energy
        from codecarbon.external.geography import GeoMetadata
        from codecarbon.input import DataSource

        tables: Any = DataSource()  # type: ignore[no-untyped-call]
        if not country:
            world = tables.get_carbon_intensity_per_source_data()
            return {
                "country": "world average",
                "g_per_kwh": float(world["world_average"]),
                "source": world["world_average_source"],
            }
        known = tables.get_global_energy_mix_data()
        code = country.upper()
        if code not in known:
            raise UsageError(f"carbon.country: {suggest(code, known, kind='country code')}")
        place = GeoMetadata(country_iso_code=code, country_name=known[code]["country_name"])
        kilograms = Emissions(tables).get_country_emissions(Energy.from_energy(kWh=1.0), place)
    return {
        "country": code,
        "g_per_kwh": float(kilograms) * 1000,
        "source": "codecarbon's energy mix by country",
    }


def energy_source(tracker: Any) -> EnergySource:
    """Where a tracker has its CPU energy from: the hardware it settled on, not what it hoped for."""
    for hardware in getattr(tracker, "_hardware", []):
        if type(hardware).__name__ in ("AppleSiliconChip", "Raspberry"):
            return "meter"
        mode = getattr(hardware, "_mode", None)
        if mode in _SOURCES:
            return _SOURCES[mode]
    return "model"


def _start_tracker(g_per_kwh: float) -> Any:
    with warnings.catch_warnings(action="ignore"):
        from codecarbon import OfflineEmissionsTracker

        logging.getLogger("codecarbon").setLevel(
            logging.ERROR
        )  # it speaks before it reads log_level

        return OfflineEmissionsTracker(
            country_iso_code="",
            force_carbon_intensity_g_co2e_kwh=g_per_kwh,
            electricitymaps_api_token="",  # no token: nobody is asked over the network
            tracking_mode="process",
            save_to_file=False,
            log_level="error",
            allow_multiple_runs=True,
        )


def repeat_for(
    work: Callable[[], None],
    window_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[int, float]:
    """Does `work` until `window_s` have gone by, once at least; how often, and the seconds."""
    began = clock()
    passes = 0
    while True:
        work()
        passes += 1
        seconds = clock() - began
        if seconds >= window_s:
            return passes, seconds


def _batches(subject: Subject, size: int, n_inputs: int) -> list[AnyBatch]:
    """Batches of similar length from inputs spread evenly over the test split."""
    import numpy as np

    from benchmarks.data.batches import collate

    split = subject.data.test()
    n = min(n_inputs, len(split))
    rows = np.linspace(0, len(split) - 1, n).round().astype(np.int64)
    rows = rows[np.argsort(np.asarray(split.lengths)[rows], kind="stable")]
    return [collate(split, rows[i : i + size]) for i in range(0, n, size)]
