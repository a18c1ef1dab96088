"""The driver: hyperparameters, slots, ``init``, ``step``, ``run``.

One visible order for every optimizer: validation of all gradients, schedule, summing
of duplicates, clipping, shared rule, rule for each weight, constraint, iteration count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, Field, dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from .gradients import (
    Array,
    IndexedSlices,
    check_slices,
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
    computing_dtype,
    deduplicate,
    rounded_once,
)
from .rule import Rule, SharedRule
from .schedules import LearningRateSchedule
from .sparse import POLICIES, SparsePolicy, apply_sparse
from .weight_decay import decaying

Hyper = float | Callable[..., Any]
"""A number, a ``LearningRateSchedule`` (called with ``iterations``), or a callable
without arguments that gives the number of the moment."""

Constraint = Callable[[Array], Array]
"""From a weight to the weight that is allowed."""

BLOCK = 8192
"""Elements that an elementwise rule sees at once: intermediates stay in cache."""


def hyper(default: Any, domain: str) -> Any:
    """A hyperparameter with its default and its domain, as ``hyper(0.9, "[0, 1)")``."""
    return field(default=default, metadata={"domain": domain})


@dataclass(frozen=True)
class State:
    """What an optimizer remembers between steps.

    Attributes:
        iterations: steps taken so far.
        slots: for each weight, its slots by name, each of the weight's shape and dtype.
        shared: slots that belong to the step, by name.
    """

    iterations: int
    slots: tuple[dict[str, Array], ...]
    shared: dict[str, Any] = field(default_factory=dict)


class Arithmetic:
    """The numbers a rule is evaluated on: here float64 (or wider), rounded once."""

    def tensor(self, array: Array) -> Array:
        """Weights, slots or gradients, as the rule sees them."""
        array = np.asarray(array)
        return array.astype(computing_dtype(array.dtype), order="C", copy=False)

    def coefficient(self, value: Any, name: str) -> Any:
        """The hyperparameter, step count or shared slot called ``name``."""
        return value

    def store(self, result: Array, like: Array) -> Array:
        """A result of the rule, as it is kept in place of ``like``."""
        return rounded_once(np.asarray(result), np.asarray(like).dtype)

    def store_shared(self, result: Any) -> Any:
        """A result of the shared rule, as it is kept."""
        return result


class Driver:
    """What takes steps: an optimizer, or a wrapper around one."""

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots that a weight may have, in order."""
        raise NotImplementedError

    def init(self, params: Any) -> State:
        """The state before the first step.

        Args:
            params: the weights: one floating array, a sequence or a mapping of them.

        Raises:
            TypeError: a weight that is not of floating dtype.
        """
        raise NotImplementedError

    def layout(
        self, shapes: Sequence[tuple[int, ...]]
    ) -> tuple[list[dict[str, tuple[int, ...]]], set[str]]:
        """What a state consists of: for weights of these shapes the shapes of their
        slots by name, and the names of the shared slots."""
        raise NotImplementedError

    def replaced(self, **changes: Any) -> Any:
        """The same with other hyperparameters."""
        return replace(self, **changes)  # type: ignore[type-var]

    def advance(
        self,
        weights: Sequence[Array],
        gradients: Sequence[Array | IndexedSlices | None],
        state: State,
        arithmetic: Arithmetic,
        constraints: Sequence[Constraint | None] = (),
    ) -> tuple[list[Array], State]:
        """``step`` on lists that are known to fit, in the given arithmetic.

        NaN and infinity flow without a warning.
        """
        raise NotImplementedError

    def step(
        self, params: Any, grads: Any, state: State, *, constraints: Any = None
    ) -> tuple[Any, State]:
        """One step; no argument is changed.

        Args:
            params: the weights: one floating array, a sequence or a mapping of them.
            grads: gradients of the same structure: arrays of the weights' shapes,
                ``IndexedSlices``, or ``None`` for a weight to leave alone.
            state: from ``init`` or the step before.
            constraints: a function from a weight to a weight, applied after the
                update, or a structure of such functions (``None``: no constraint).

        Returns:
            the new weights, structured as ``params``, and the new state. Arithmetic is
            float64 (longdouble for longdouble weights), each result rounded once to the
            dtype of what it replaces.

        Raises:
            TypeError, ValueError: a gradient, weight or state that does not fit, before
                anything is computed.
        """
        weights, rebuild = _flatten(params)
        gradients = _aligned(grads, params, "grads")
        _check_fit(self, weights, gradients, state)
        if not weights:
            return rebuild([]), state
        limits = _aligned(constraints, params, "constraints")
        new, state = self.advance(weights, gradients, state, Arithmetic(), limits)
        return rebuild(new), state

    def run(
        self,
        params: Any,
        gradients: Iterable[Any],
        state: State | None = None,
        *,
        constraints: Any = None,
    ) -> tuple[Any, State]:
        """A step for each of ``gradients``; ``state`` defaults to ``init(params)``."""
        state = self.init(params) if state is None else state
        for grads in gradients:
            params, state = self.step(params, grads, state, constraints=constraints)
        return params, state


@dataclass(frozen=True)
class Optimizer(Driver):
    """What all optimizers have in common; a subclass declares rules.

    Args:
        learning_rate: a number, a schedule or a callable; ``[0, inf)``.
        decay: the learning rate becomes ``learning_rate / (1 + decay * iterations)``.
        clipvalue: each element of a gradient is limited to ``[-clipvalue, clipvalue]``.
        clipnorm: each gradient is scaled down to this Euclidean norm.
        global_clipnorm: all gradients are scaled by one factor to this joint norm.
        sparse: ``"every_row"`` or ``"touched_rows"``; ``None`` is the policy that the
            home library uses.
        weight_decay: decoupled weight decay, for any optimizer: before the rule, each
            weight shrinks by this part of itself; ``None`` (default): no decay. Where a
            rule of the class reads ``weight_decay``, it is that rule's business alone.
        decay_rows: the rows that a sparse gradient decays, ``"touched_rows"`` (as in
            TensorFlow Addons) or ``"every_row"`` (as in Keras 3, torch and optax;
            always with ``sparse="every_row"``).
        decay_times_learning_rate: multiply the decay by the learning rate, as Keras 3,
            torch and optax do; Addons does not.
        schedule_multiplier: the paper's ``eta_t``, which multiplies the learning rate
            and the decay (once): a schedule that anneals both; ``None`` (default): 1.
        multipliers: for each weight, factors on hyperparameters by name, as
            ``{"learning_rate": 0.1}``, or ``{"weight_decay": 0}`` to exclude it. Only
            hyperparameters whose domain begins at 0 and has no end have multiples.
        name: a label without effect.

    Clipping follows the summing of duplicates; ``clipvalue`` comes before a norm.
    ``clipnorm`` and ``global_clipnorm`` exclude each other.

    Raises:
        TypeError, ValueError: an argument outside its domain.
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    _: KW_ONLY
    decay: float = hyper(0.0, "[0, inf)")
    clipvalue: float | None = hyper(None, "(0, inf)")
    clipnorm: float | None = hyper(None, "(0, inf)")
    global_clipnorm: float | None = hyper(None, "(0, inf)")
    sparse: str | None = None
    weight_decay: Hyper | None = hyper(None, "[0, inf)")
    decay_rows: str = "touched_rows"
    decay_times_learning_rate: bool = False
    schedule_multiplier: Hyper | None = hyper(None, "[0, inf)")
    multipliers: Sequence[Mapping[str, float]] | None = field(default=None, hash=False)
    name: str | None = None

    shared: ClassVar[SharedRule | None] = None
    constants: ClassVar[dict[str, float]] = {}
    elementwise: ClassVar[bool] = True
    home: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({},)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared = set(cls.constants)
        for base in cls.__mro__:
            own = {**vars(base), **vars(base).get("__dataclass_fields__", {})}
            declared |= {
                name
                for name, f in own.items()
                if isinstance(f, Field) and "domain" in f.metadata
            }
        shared = cls.shared
        made = set(shared.results) if shared else set()
        for attribute in vars(cls).values():
            if isinstance(attribute, Rule):
                known = declared | made | {"w", "g", "t", "touched", *attribute.slots}
            elif isinstance(attribute, SharedRule):
                known = declared | {"t", *attribute.slots}
            else:
                continue
            if unknown := set(attribute.parameters) - known:
                raise TypeError(
                    f"{cls.__name__}.{attribute.function.__name__} names "
                    f"{', '.join(sorted(unknown))}, which is neither a slot nor a "
                    f"hyperparameter of {cls.__name__}"
                )

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if domain := f.metadata.get("domain"):
                optional = value is None and str(f.type).endswith("| None")
                if not optional and not callable(value):
                    object.__setattr__(self, f.name, _in_domain(f.name, value, domain))
        if self.clipnorm is not None and self.global_clipnorm is not None:
            raise ValueError(
                "clipnorm and global_clipnorm exclude each other, got "
                f"clipnorm={self.clipnorm} and global_clipnorm={self.global_clipnorm}"
            )
        if self.sparse is not None and self.sparse not in POLICIES:
            raise ValueError(
                f"sparse must be None or one of {', '.join(POLICIES)}, "
                f"got {self.sparse!r}"
            )
        if self.decay_rows not in POLICIES:
            raise ValueError(
                f"decay_rows must be one of {', '.join(POLICIES)}, "
                f"got {self.decay_rows!r}"
            )
        for factors in self.multipliers or ():
            for name, factor in factors.items():
                _in_domain(f"the multiplier of {name}", factor, self._multiple(name))

    @property
    def selected(self) -> Rule:
        """The rule that the options select; a class with several must say which.

        Raises:
            TypeError: the class has several rules, or none.
        """
        for cls in type(self).__mro__:
            found = [rule for rule in vars(cls).values() if isinstance(rule, Rule)]
            if len(found) == 1:
                return found[0]
            if found:
                break
        raise TypeError(
            f"{type(self).__name__} must have one @rule, or a property `selected` that "
            "says which of its rules the options select"
        )

    def selected_for(self, shape: tuple[int, ...]) -> Rule:
        """The rule for a weight of this shape; one of ``selectable``."""
        return self.selected

    @property
    def selectable(self) -> tuple[Rule, ...]:
        """The rules that the options select, where the shape of a weight decides."""
        return (self.selected,)

    @property
    def rule(self) -> Rule:
        """The rule that is run: the selected one, with weight decay if there is any."""
        return self._run(self.selected)

    @property
    def policy(self) -> SparsePolicy:
        """What a sparse gradient does to the rows it does not touch."""
        if self.sparse and not self.decays:
            return POLICIES[self.sparse]
        return self.rule.sparse

    @property
    def decays(self) -> bool:
        """Whether the weights decay apart from the selected rule."""
        if self.weight_decay is None:
            return False
        rules = [a for c in type(self).__mro__ for a in vars(c).values()]
        return not any(
            isinstance(rule, Rule) and "weight_decay" in rule.parameters
            for rule in rules
        )

    def _run(self, selected: Rule) -> Rule:
        if not self.decays:
            return selected
        return decaying(
            selected, self.sparse, self.decay_rows, self.decay_times_learning_rate
        )

    def _multiple(self, name: str) -> str:
        """The domain of a multiplier."""
        domains = {f.name: f.metadata.get("domain", "") for f in fields(self)}
        domain = domains.get(name, "")
        if domain not in ("[0, inf)", "(0, inf)"):
            among = [n for n, d in domains.items() if d in ("[0, inf)", "(0, inf)")]
            raise ValueError(
                f"{name} has no multiples; of {type(self).__name__} only "
                f"{', '.join(among)} have"
            )
        return domain

    def rule_for(self, shape: tuple[int, ...]) -> Rule:
        """The rule that is run for a weight of this shape; one of ``variants``."""
        selected = self.selected_for(shape)
        return self.rule if selected is self.selected else self._run(selected)

    @property
    def variants(self) -> tuple[Rule, ...]:
        """The rules that are run, where the shape of a weight decides."""
        return tuple(
            self.rule if rule is self.selected else self._run(rule)
            for rule in self.selectable
        )

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots that a weight may have, in order."""
        slots = (slot for rule in self.variants for slot in rule.slots.values())
        return tuple(dict.fromkeys(slot.name for slot in slots))

    @classmethod
    def rules(cls) -> dict[str, Rule]:
        """All rules of the class by name, whatever the options."""
        return {n: r for n, r in vars(cls).items() if isinstance(r, Rule)}

    def hyperparameters(self) -> tuple[str, ...]:
        """The hyperparameters that the selected rules read."""
        names = tuple(name for rule in self.variants for name in rule.parameters)
        symbols = {symbol for rule in self.variants for symbol in rule.slots}
        if self.shared:
            names += self.shared.parameters
            symbols |= set(self.shared.results)
        declared = {f.name for f in fields(self)} - symbols
        return tuple(dict.fromkeys(n for n in names if n in declared))

    def init(self, params: Any) -> State:
        weights, _ = _flatten(params)
        return State(
            iterations=0,
            slots=tuple(
                {
                    slot.name: np.full(
                        slot.shape_for(w.shape), self._start(slot.start), w.dtype
                    )
                    for slot in self.rule_for(w.shape).slots.values()
                }
                for w in weights
            ),
            shared={
                slot.name: self._start(slot.start)
                for slot in (self.shared.slots.values() if self.shared else ())
            },
        )

    def layout(
        self, shapes: Sequence[tuple[int, ...]]
    ) -> tuple[list[dict[str, tuple[int, ...]]], set[str]]:
        if self.multipliers and len(self.multipliers) != len(shapes):
            raise ValueError(
                f"multipliers are for {len(self.multipliers)} weights, "
                f"got {len(shapes)}"
            )
        slots = [
            {s.name: s.shape_for(shape) for s in self.rule_for(shape).slots.values()}
            for shape in shapes
        ]
        shared = self.shared.slots.values() if self.shared else ()
        return slots, {slot.name for slot in shared}

    def advance(
        self,
        weights: Sequence[Array],
        gradients: Sequence[Array | IndexedSlices | None],
        state: State,
        arithmetic: Arithmetic,
        constraints: Sequence[Constraint | None] = (),
    ) -> tuple[list[Array], State]:
        with np.errstate(all="ignore"):
            new, state = self._advance(weights, gradients, state, arithmetic)
        for i, constraint in enumerate(constraints):
            if constraint is not None and gradients[i] is not None:
                new[i] = np.asarray(constraint(new[i])).astype(new[i].dtype, copy=False)
        return new, state

    def _advance(
        self,
        weights: Sequence[Array],
        gradients: Sequence[Array | IndexedSlices | None],
        state: State,
        arithmetic: Arithmetic,
    ) -> tuple[list[Array], State]:
        named = self.coefficients(state.iterations, arithmetic)
        shared = dict(state.shared)
        if self.shared:
            for symbol, slot in self.shared.slots.items():
                named[symbol] = arithmetic.coefficient(shared[slot.name], symbol)
            named |= self.shared(**named)
            for symbol, slot in self.shared.slots.items():
                shared[slot.name] = arithmetic.store_shared(named[symbol])
        gradients = self._clipped(
            [self.summed(g, arithmetic) for g in gradients], named, arithmetic
        )

        new_weights, new_slots = [], []
        for i, (w, g, slots) in enumerate(
            zip(weights, gradients, state.slots, strict=True)
        ):
            if g is not None:
                own = self.multiplied(named, i, arithmetic)
                w, slots = self._update(w, g, slots, own, arithmetic)
            new_weights.append(w)
            new_slots.append(slots)
        return new_weights, State(state.iterations + 1, tuple(new_slots), shared)

    def coefficients(self, iterations: int, arithmetic: Arithmetic) -> dict[str, Any]:
        """The step count ``t`` and every hyperparameter at this step, by name.

        Raises:
            ValueError: a schedule or callable gave a value outside the domain.
        """
        named = {"t": arithmetic.coefficient(iterations + 1, "t")}
        for name, value in self.constants.items():
            named[name] = arithmetic.coefficient(value, name)
        for f in fields(self):
            value = getattr(self, f.name)
            domain = f.metadata.get("domain")
            if domain is None or value is None:
                continue
            if isinstance(value, LearningRateSchedule):
                value = _in_domain(f.name, value(iterations), domain)
            elif callable(value):
                value = _in_domain(f.name, value(), domain)
            named[f.name] = arithmetic.coefficient(value, f.name)
        if self.decay:
            elapsed = arithmetic.coefficient(iterations, "t")
            named["learning_rate"] = named["learning_rate"] / (
                1 + named["decay"] * elapsed
            )
        if self.schedule_multiplier is not None:
            eta = named["schedule_multiplier"]
            named["learning_rate"] = eta * named["learning_rate"]
            if self.decays and not self.decay_times_learning_rate:
                named["weight_decay"] = eta * named["weight_decay"]
        return named

    def multiplied(
        self, named: dict[str, Any], index: int, arithmetic: Arithmetic
    ) -> dict[str, Any]:
        """``coefficients`` with the multipliers of the weight at this position."""
        factors = self.multipliers[index] if self.multipliers else {}
        return named | {
            name: named[name] * arithmetic.coefficient(factor, "multiplier")
            for name, factor in factors.items()
            if name in named
        }

    def summed(self, g: Any, arithmetic: Arithmetic) -> Any:
        """A sparse gradient with each index once; anything else as it is."""
        if not isinstance(g, IndexedSlices):
            return g
        return deduplicate(replace(g, values=arithmetic.tensor(g.values)))

    def _start(self, start: float | str) -> float:
        value = getattr(self, start) if isinstance(start, str) else start
        if isinstance(value, LearningRateSchedule):
            return value(0)
        return value() if callable(value) else value

    def _clipped(
        self, gradients: list[Any], named: dict[str, Any], arithmetic: Arithmetic
    ) -> list[Any]:
        if self.clipvalue is self.clipnorm is self.global_clipnorm is None:
            return gradients
        present = [i for i, g in enumerate(gradients) if g is not None]
        clipped = [arithmetic.tensor(_values(gradients[i])) for i in present]
        if self.clipvalue is not None:
            clipped = [clip_by_value(g, named["clipvalue"]) for g in clipped]
        if self.clipnorm is not None:
            clipped = [clip_by_norm(g, named["clipnorm"]) for g in clipped]
        if self.global_clipnorm is not None:
            clipped = clip_by_global_norm(clipped, named["global_clipnorm"])
        gradients = list(gradients)
        for i, g in zip(present, clipped, strict=True):
            gradients[i] = _with_values(gradients[i], g)
        return gradients

    def _update(
        self,
        w: Array,
        g: Array | IndexedSlices,
        slots: dict[str, Array],
        named: dict[str, Any],
        arithmetic: Arithmetic,
    ) -> tuple[Array, dict[str, Array]]:
        rule = self.rule_for(w.shape)
        tensors = {"w": w} | {s: slots[slot.name] for s, slot in rule.slots.items()}

        def update(given: dict[str, Array]) -> dict[str, Array]:
            touched = given.pop("touched")
            if self.sparse == "every_row":  # as dense, in what touched rows get too
                touched = np.True_
            everything = {**named, "touched": touched}
            alike = touched.ndim == 0 or "touched" not in rule.parameters
            if self.elementwise and alike and _divisible(given):
                return _in_blocks(rule, given, everything, arithmetic)
            return _evaluate(rule, given, everything, arithmetic)

        if isinstance(g, IndexedSlices):
            new = apply_sparse(
                update,
                tensors,
                g,
                self.policy,
                by_rows=self.elementwise,
                whole=[symbol for symbol, slot in rule.slots.items() if slot.shape],
            )
        else:
            new = update({**tensors, "g": g, "touched": np.True_})
        return new["w"], {slot.name: new[symbol] for symbol, slot in rule.slots.items()}


def _evaluate(
    rule: Rule, given: dict[str, Array], named: dict[str, Any], arithmetic: Arithmetic
) -> dict[str, Array]:
    tensors = {symbol: arithmetic.tensor(array) for symbol, array in given.items()}
    new = rule(**{**named, **tensors})
    return {symbol: arithmetic.store(new[symbol], given[symbol]) for symbol in new}


def _divisible(given: dict[str, Array]) -> bool:
    return all(isinstance(a, np.ndarray) for a in given.values()) and (
        given["w"].size > BLOCK
    )


def _in_blocks(
    rule: Rule, given: dict[str, Array], named: dict[str, Any], arithmetic: Arithmetic
) -> dict[str, Array]:
    flat = {symbol: array.reshape(-1) for symbol, array in given.items()}
    new = {symbol: np.empty_like(given[symbol], order="C") for symbol in rule.results}
    out = {symbol: array.reshape(-1) for symbol, array in new.items()}
    for start in range(0, given["w"].size, BLOCK):
        block = slice(start, start + BLOCK)
        part = {symbol: array[block] for symbol, array in flat.items()}
        for symbol, result in _evaluate(rule, part, named, arithmetic).items():
            out[symbol][block] = result
    return new


def _values(g: Any) -> Array:
    return g.values if isinstance(g, IndexedSlices) else g


def _with_values(g: Any, values: Array) -> Any:
    return replace(g, values=values) if isinstance(g, IndexedSlices) else values


def _flatten(params: Any) -> tuple[list[np.ndarray], Callable[[list], Any]]:
    if isinstance(params, Mapping):
        weights = list(params.values())
        names = list(params)
        rebuild: Callable[[list], Any] = lambda new: dict(zip(names, new, strict=True))  # noqa: E731
    elif isinstance(params, list | tuple):
        weights, rebuild = list(params), getattr(params, "_make", type(params))
    else:
        weights, rebuild = [params], lambda new: new[0] if new else params
    weights = [np.asarray(w) for w in weights]
    for w in weights:
        if w.dtype.kind not in "fO" and w.dtype.name != "bfloat16":
            raise TypeError(f"weights must be of floating dtype, got {w.dtype}")
    return weights, rebuild


def _aligned(structure: Any, params: Any, what: str) -> list[Any]:
    """``structure`` as a list that goes with the weights in ``params``."""
    if isinstance(params, Mapping):
        if structure is None or callable(structure):
            return [structure] * len(params)
        if not isinstance(structure, Mapping) or set(structure) - set(params):
            raise ValueError(f"{what} must be a mapping with keys among {list(params)}")
        return [structure.get(name) for name in params]
    if isinstance(params, list | tuple):
        if structure is None or callable(structure):
            return [structure] * len(params)
        if not isinstance(structure, list | tuple) or len(structure) != len(params):
            raise ValueError(
                f"{what} must be a sequence of {len(params)}, one a weight"
            )
        return list(structure)
    return [structure]


def _check_fit(
    driver: Driver,
    weights: list[np.ndarray],
    gradients: list[Any],
    state: State,
) -> None:
    if weights and all(g is None for g in gradients):
        raise ValueError("no gradient was given: each of grads is None")
    if len(state.slots) != len(weights):
        raise ValueError(
            f"the state belongs to {len(state.slots)} weights, got {len(weights)}"
        )
    layout, shared = driver.layout([w.shape for w in weights])
    if set(state.shared) != shared:
        raise ValueError(
            f"the state has shared slots {sorted(state.shared)}, the rule needs "
            f"{sorted(shared)}"
        )
    for i, (w, g, slots, shapes) in enumerate(
        zip(weights, gradients, state.slots, layout, strict=True)
    ):
        if set(slots) != set(shapes):
            raise ValueError(
                f"the state of weight {i} has slots {sorted(slots)}, the rule needs "
                f"{sorted(shapes)}"
            )
        for name, slot in slots.items():
            if np.shape(slot) != (shape := shapes[name]):
                raise ValueError(
                    f"slot {name} of weight {i} has shape {np.shape(slot)}; it must "
                    f"have {shape} beside a weight of shape {w.shape}"
                )
        if g is None:
            continue
        if np.iscomplexobj(_values(g)):
            raise TypeError(f"the gradient of weight {i} is complex, weights are real")
        try:
            if isinstance(g, IndexedSlices):
                check_slices(g, w.shape)
            elif np.shape(g) != w.shape:
                raise ValueError(
                    f"a dense gradient must have the weight's shape {w.shape}, "
                    f"got {np.shape(g)}"
                )
        except (TypeError, ValueError) as error:
            raise type(error)(f"gradient of weight {i}: {error}") from None


def _in_domain(name: str, value: Any, domain: str) -> float:
    low, high = (float(end) for end in domain[1:-1].split(","))
    try:
        if isinstance(value, str):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number in {domain}, got {value!r}") from None
    above = number > low or (domain[0] == "[" and number == low)
    below = number < high or (domain[-1] == "]" and number == high)
    if not (above and below):
        raise ValueError(f"{name} must lie in {domain}, got {value}")
    return number
