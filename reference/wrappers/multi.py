"""Several optimizers, each for some of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, ClassVar

from ..gradients import Array, IndexedSlices
from ..optimizer import Arithmetic, Constraint, Driver, State, _flatten
from ..optimizers.adam import Adam
from ..optimizers.nadam import Nadam
from ..wrapper import ACCUMULATION, check_inner

Places = Sequence[int] | EllipsisType


@dataclass(frozen=True)
class MultiOptimizer(Driver):
    """Several optimizers, each for some of the weights: discriminative layer training.

    Howard, Ruder, *Universal Language Model Fine-tuning for Text Classification*, 2018,
    arXiv:1801.06146, section 3.2, gives each layer its learning rate.

    Args:
        optimizers_and_layers: pairs of an optimizer and the positions of its weights;
            ``...`` stands for all weights that no other pair names.

    A state has each weight's own slots; shared: what each optimizer shares, and its
    ``iterations``, as ``"0/iterations"``. An optimizer counts the steps at which one of
    its weights has a gradient; ``state.iterations`` counts all.

    Raises:
        TypeError: no optimizer where one must be.
        ValueError: an optimizer or a position that comes twice; a weight that no pair
            is for, in ``init``.

    >>> import numpy as np, reference
    >>> slow, fast = reference.SGD(learning_rate=1.0), reference.SGD(learning_rate=10.0)
    >>> two = MultiOptimizer([(slow, [1]), (fast, ...)])
    >>> w, state = two.run([np.array(0.0), np.array(0.0)], [[np.array(1.0)] * 2])
    >>> [float(x) for x in w]
    [-10.0, -1.0]
    """

    optimizers_and_layers: Sequence[tuple[Driver, Places]]

    elementwise: ClassVar[bool] = False
    clipvalue: ClassVar[None] = None
    clipnorm: ClassVar[None] = None
    global_clipnorm: ClassVar[None] = None
    home: ClassVar[str] = "tensorflow_addons.optimizers.MultiOptimizer"
    paper: ClassVar[str] = "Howard, Ruder 2018, arXiv:1801.06146"
    examples: ClassVar = (
        {"optimizers_and_layers": ((Adam(), (0,)), (Nadam(clipnorm=2.0), ...))},
    )

    def __post_init__(self) -> None:
        named: list[int] = []
        for optimizer, places in self.optimizers_and_layers:
            check_inner(self, optimizer, ACCUMULATION)
            named += [] if places is ... else list(places)
        rest = sum(places is ... for _, places in self.optimizers_and_layers)
        if len(set(named)) < len(named) or rest > 1:
            raise ValueError(
                "each weight has one optimizer, got the positions "
                f"{[places for _, places in self.optimizers_and_layers]}"
            )

    @property
    def place(self) -> int:
        """That of the outermost wrapper among the optimizers."""
        inner = (optimizer for optimizer, _ in self.optimizers_and_layers)
        return max((getattr(optimizer, "place", 0) for optimizer in inner), default=0)

    @property
    def slots(self) -> tuple[str, ...]:
        names = (
            s for optimizer, _ in self.optimizers_and_layers for s in optimizer.slots
        )
        return tuple(dict.fromkeys(names))

    def hyperparameters(self) -> tuple[str, ...]:
        """None: each optimizer has its own."""
        return ()

    def init(self, params: Any) -> State:
        weights, _ = _flatten(params)
        slots: list[dict[str, Array]] = [{} for _ in weights]
        shared: dict[str, Any] = {}
        for number, optimizer, places in self._groups(len(weights)):
            start = optimizer.init([weights[i] for i in places])
            for i, own in zip(places, start.slots, strict=True):
                slots[i] = own
            shared |= _prefixed(number, start)
        return State(0, tuple(slots), shared)

    def layout(
        self, shapes: Sequence[tuple[int, ...]]
    ) -> tuple[list[dict[str, tuple[int, ...]]], set[str]]:
        layout: list[dict[str, tuple[int, ...]]] = [{} for _ in shapes]
        shared: set[str] = set()
        for number, optimizer, places in self._groups(len(shapes)):
            own, names = optimizer.layout([shapes[i] for i in places])
            for i, slots in zip(places, own, strict=True):
                layout[i] = slots
            shared |= {f"{number}/{name}" for name in (*names, "iterations")}
        return layout, shared

    def advance(
        self,
        weights: Sequence[Array],
        gradients: Sequence[Array | IndexedSlices | None],
        state: State,
        arithmetic: Arithmetic,
        constraints: Sequence[Constraint | None] = (),
    ) -> tuple[list[Array], State]:
        new, slots, shared = list(weights), list(state.slots), dict(state.shared)
        for number, optimizer, places in self._groups(len(weights)):
            if all(gradients[i] is None for i in places):
                continue
            prefix = f"{number}/"
            own = {
                name.removeprefix(prefix): value
                for name, value in state.shared.items()
                if name.startswith(prefix)
            }
            count = int(own.pop("iterations"))
            stepped, after = optimizer.advance(
                [weights[i] for i in places],
                [gradients[i] for i in places],
                State(count, tuple(state.slots[i] for i in places), own),
                arithmetic,
                [constraints[i] for i in places] if constraints else (),
            )
            for i, w, kept in zip(places, stepped, after.slots, strict=True):
                new[i], slots[i] = w, kept
            shared |= _prefixed(number, after)
        return new, State(state.iterations + 1, tuple(slots), shared)

    def _groups(self, weights: int) -> list[tuple[int, Driver, list[int]]]:
        """The number of each optimizer, the optimizer, the positions of its weights."""
        pairs = self.optimizers_and_layers
        named = [i for _, places in pairs if places is not ... for i in places]
        rest = [i for i in range(weights) if i not in named]
        if rest and all(places is not ... for _, places in pairs):
            raise ValueError(f"no optimizer is for the weights at the positions {rest}")
        return [
            (number, optimizer, rest if places is ... else list(places))
            for number, (optimizer, places) in enumerate(pairs)
        ]


def _prefixed(number: int, state: State) -> dict[str, Any]:
    own = {**state.shared, "iterations": state.iterations}
    return {f"{number}/{name}": value for name, value in own.items()}
