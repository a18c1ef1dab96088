"""What is measured, against whom, and how it must compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """Two costs and their ratio. The times are `None` where memory is compared."""

    ours_ms: float | None
    rival_ms: float | None
    ratio: float

    @classmethod
    def of_times(cls, times: tuple[float, float]) -> Measurement:
        """Return the comparison of two times: ours, the rival's."""
        ours, rival = times
        return cls(ours, rival, ours / rival)


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        name: what is measured, as in "dense/Adam".
        rival: what it is compared with.
        target: the ratio, ours / rival, that must not be exceeded; `None` where the
            ratio is only shown.
        measure: takes the seconds to spend on repeats.
    """

    name: str
    rival: str
    target: float | None
    measure: Callable[[float], Measurement]


# Configurations: class name and constructor arguments.
CONFIGURATIONS: dict[str, tuple[str, dict[str, object]]] = {
    "SGD": ("SGD", {}),
    "SGD-momentum": ("SGD", {"momentum": 0.9}),
    "SGD-nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "Adagrad": ("Adagrad", {}),
    "Adadelta": ("Adadelta", {}),
    "RMSprop": ("RMSprop", {}),
    "RMSprop-centered": ("RMSprop", {"centered": True}),
    "RMSprop-momentum": ("RMSprop", {"momentum": 0.9}),
    "Adam": ("Adam", {}),
    "Adam-amsgrad": ("Adam", {"amsgrad": True}),
    "Adamax": ("Adamax", {}),
    "Nadam": ("Nadam", {}),
    "Ftrl": ("Ftrl", {}),
}
# tf_keras has one kernel for the whole update of each but these.
COMPOSED = ("RMSprop", "RMSprop-centered", "Nadam")
# Of Keras 3: its class and ours that does the same, with constructor arguments.
KERAS_3: dict[str, tuple[str, dict[str, object]]] = {
    "AdamW": ("AdamW", {}),
    "Adafactor": ("Adafactor", {}),
    "Lion": ("Lion", {}),
    "Lamb": ("LAMB", {"decay_first": True, "epsilon": 1e-7}),
    "Nadam": ("Nadam", {"schedule_decay": 1.0}),
    "RMSprop": ("RMSprop", {"epsilon_inside": True}),
    "ScheduleFreeAdamW": ("ScheduleFreeAdamW", {}),
}
# A sparse gradient changes the slots of every row in these, touched rows in the others.
EVERY_ROW = ("RMSprop", "RMSprop-centered", "Adam", "Adam-amsgrad", "Nadam")


def all_cases() -> Iterator[Case]:
    """Yield every case. TensorFlow is imported when a case that needs it runs."""
    yield from _reference_cases()
    yield from _dense_cases()
    yield from _keras_3_cases()
    yield from _sparse_cases()
    yield from _small_cases()


def _reference_cases() -> Iterator[Case]:
    from benchmarks import numpy_side

    yield Case("import/reference", "0.2 s", 1.0, numpy_side.import_time)
    yield Case("reference/Adam", "the plain expression", 1.0, numpy_side.adam_time)
    yield Case(
        "reference/Adam/memory", "inputs + outputs", 1.05, numpy_side.adam_memory
    )


def _dense_cases() -> Iterator[Case]:
    for name in CONFIGURATIONS:

        def measure(seconds: float, name: str = name) -> Measurement:
            from benchmarks import tensorflow_side

            return tensorflow_side.dense(name, seconds)

        target = 0.2 if name in COMPOSED else 1.05
        yield Case(f"dense/{name}", f"tf_keras {name}", target, measure)


def _keras_3_cases() -> Iterator[Case]:
    for name in KERAS_3:

        def measure(seconds: float, name: str = name) -> Measurement:
            from benchmarks import tensorflow_side

            return tensorflow_side.against_keras_3(name, seconds)

        yield Case(f"keras-3/{name}", f"Keras 3 {name}", 0.35, measure)

    def products(seconds: float) -> Measurement:
        from benchmarks import tensorflow_side

        return tensorflow_side.muon(seconds)

    yield Case("matrix/Muon", "its matrix products", 1.2, products)


def _sparse_cases() -> Iterator[Case]:
    for name in CONFIGURATIONS:

        def against(seconds: float, rival: str, name: str = name) -> Measurement:
            from benchmarks import tensorflow_side

            return tensorflow_side.sparse(name, rival, seconds)

        def against_itself(seconds: float, name: str = name) -> Measurement:
            return against(seconds, name, name)

        def against_momentum(seconds: float, name: str = name) -> Measurement:
            return against(seconds, "SGD-momentum", name)

        def growth(seconds: float, name: str = name) -> Measurement:
            from benchmarks import tensorflow_side

            return tensorflow_side.sparse_growth(name, seconds)

        if name in EVERY_ROW:
            yield Case(f"sparse/{name}/1M", f"tf_keras {name}", 0.35, against_itself)
            continue
        yield Case(f"sparse/{name}/1M", "tf_keras SGD-momentum", 1.1, against_momentum)
        yield Case(f"sparse/{name}/growth", "ours, 10,000 rows", 1.5, growth)
        if name == "Adamax":
            yield Case(f"sparse/{name}/own", f"tf_keras {name}", 0.05, against_itself)


def _small_cases() -> Iterator[Case]:
    for name in CONFIGURATIONS:
        for moment, target in (("first", 1.5), ("later", 1.1), ("eager", None)):

            def measure(
                seconds: float, name: str = name, moment: str = moment
            ) -> Measurement:
                from benchmarks import tensorflow_side

                return tensorflow_side.small(name, moment, seconds)

            yield Case(f"small/{name}/{moment}", f"tf_keras {name}", target, measure)
