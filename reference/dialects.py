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


_OUTSIDE = (
    "the learning rate is outside the velocity: once it changes, the past changes with "
    "it, where ours keeps the steps as they were taken"
)

DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        "torch",
        "SGD",
        "SGD",
        slots={"momentum": ""},
        differs=_OUTSIDE,
        constant_rate=True,
    ),
)


def lines_of(target: str) -> Iterator[Dialect]:
    """The lines for ``"torch:Adam"``, in the order of the map."""
    return (line for line in DIALECTS if line.target == target)
