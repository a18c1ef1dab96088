"""What the optimizers of other libraries are, in terms of the rules here.

``DIALECTS`` is data: for each library and optimizer the rule and the options under
which it equals ours within the bound, or which term differs. Every line is tested
against the installed library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

LIBRARIES: dict[str, tuple[str, ...]] = {
    "torch": ("torch.optim",),
    "optax": ("optax", "optax.contrib"),
    "keras": ("keras.optimizers",),
    "tf_keras": ("tf_keras.optimizers",),
    "tf_keras.legacy": ("tf_keras.optimizers.legacy",),
    "addons": ("tensorflow_addons.optimizers",),
}
"""The libraries by the names that targets use, and the modules that hold them."""


@dataclass(frozen=True)
class Dialect:
    """One optimizer of a library, and what it is here.

    Attributes:
        library: a key of ``LIBRARIES``.
        name: its name there.
        rule: the name of the rule here; empty where there is none.
        options: arguments of the rule under which the two are equal.
        theirs: arguments of theirs under which they are.
        arguments: our hyperparameters that have another name there than the port of
            the library knows; empty for one that it lacks.
        slots: our slots that have another name there; ``-`` before it for the opposite
            sign, empty for one that is kept in another form.
        differs: the term that differs, under other options or altogether.
        constant_rate: they are equal while the learning rate is constant.
    """

    library: str
    name: str
    rule: str
    options: Mapping[str, Any] = field(default_factory=dict)
    theirs: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    slots: Mapping[str, str] = field(default_factory=dict)
    differs: str = ""
    constant_rate: bool = False

    @property
    def target(self) -> str:
        """As the command line names it: ``"torch:Adam"``."""
        return f"{self.library}:{self.name}"


_KERAS_EVERY_ROW = {"sparse": "every_row"}
_NADAM_KERAS = {"schedule_decay": 1.0, "sparse": "every_row"}
_CONSTANT_MOMENTUM = {"schedule_decay": 1e6}
_LACKS_SCHEDULE = {"schedule_decay": ""}
_UNDER_ROOT = "epsilon is under the root, where ours is beside it"
_CORRECTED = "epsilon is added to the root of the corrected second moment"


def _keras(library: str) -> tuple[Dialect, ...]:
    """Keras 3, and the optimizers of tf_keras from which it comes."""
    every_row = _KERAS_EVERY_ROW

    def line(name: str, **rest: Any) -> Dialect:
        return Dialect(library, name, **{"rule": name, "options": every_row, **rest})

    return (
        line("SGD"),
        line("Adam"),
        line("Adamax"),
        line("Adadelta"),
        line("Ftrl"),
        line("Nadam", options=_NADAM_KERAS, arguments=_LACKS_SCHEDULE),
    )


DIALECTS: tuple[Dialect, ...] = (
    Dialect("torch", "SGD", "SGD", {"momentum": 0.0}),
    Dialect(
        "torch",
        "SGD",
        "Momentum",
        {"sparse": "every_row"},
        arguments={"use_nesterov": "nesterov"},
    ),
    Dialect("torch", "Adagrad", "Adagrad"),
    Dialect("torch", "Adadelta", "Adadelta"),
    Dialect("torch", "NAdam", "Nadam"),
    Dialect("torch", "RMSprop", "RMSprop", {"momentum": 0.0}),
    Dialect("torch", "SparseAdam", "LazyAdam"),
    Dialect("torch", "RAdam", "RAdam"),
    Dialect("optax", "sgd", "SGD", {"momentum": 0.0}),
    Dialect(
        "optax",
        "sgd",
        "Momentum",
        arguments={"use_nesterov": "nesterov"},
        slots={"momentum": "trace"},
    ),
    Dialect("optax", "adadelta", "Adadelta"),
    Dialect(
        "optax",
        "rmsprop",
        "RMSprop",
        {"momentum": 0.0},
        {"eps_in_sqrt": False},
        differs=f"by default {_UNDER_ROOT}",
    ),
    Dialect(
        "optax",
        "nadam",
        "Nadam",
        _CONSTANT_MOMENTUM,
        arguments=_LACKS_SCHEDULE,
    ),
    *_keras("keras"),
    *_keras("tf_keras"),
    *(
        Dialect("tf_keras.legacy", name, name)
        for name in (
            "SGD",
            "Adagrad",
            "Adadelta",
            "RMSprop",
            "Adam",
            "Adamax",
            "Nadam",
            "Ftrl",
        )
    ),
)
"""The map. Where an optimizer has several lines, options choose among them."""


def lines_of(target: str) -> Iterator[Dialect]:
    """The lines for ``"torch:Adam"``, in the order of the map."""
    return (line for line in DIALECTS if line.target == target)
