"""What the optimizers of other libraries are, in terms of the rules here.

``DIALECTS`` is data: for each library and optimizer the rule and the options under
which it equals ours within the bound, or which term differs. Every line is tested
against the installed library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
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
        instance: arguments of the rule that show what it is about, where its defaults
            would not: a momentum that is not zero.
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
    instance: Mapping[str, Any] = field(default_factory=dict)
    differs: str = ""
    constant_rate: bool = False

    @property
    def target(self) -> str:
        """As the command line names it: ``"torch:Adam"``."""
        return f"{self.library}:{self.name}"


_EVERY_ROW = {"sparse": "every_row"}
_DECAYING = {"decay_rows": "every_row", "decay_times_learning_rate": True}
_SOME_DECAY = {"weight_decay": 0.01}
_COCOB = ("lr", "grad_norm_sum", "gradients_sum", "tilde_w", "reward")
_NESTEROV = {"use_nesterov": "nesterov"}
_NO_SCHEDULE = {"schedule_decay": ""}


def _of(library: str) -> Callable[..., Dialect]:
    return partial(Dialect, library)


def _torch() -> Iterator[Dialect]:
    line = _of("torch")
    yield line("Adam", "CorrectedAdam")
    yield line("AdamW", "CorrectedAdam", _DECAYING, instance=_SOME_DECAY)
    yield line("Adamax", "Adamax", {"epsilon_inside": True})
    yield line("SGD", "SGD", {"momentum": 0.0})
    yield line("SGD", "Momentum", _EVERY_ROW, arguments=_NESTEROV)
    yield line("Adagrad", "Adagrad")
    yield line("Adadelta", "Adadelta")
    outside = {"epsilon_inside": False, "rate_inside": False}
    yield line("RMSprop", "RMSprop", outside)
    yield line("NAdam", "Nadam")
    yield line("RAdam", "RAdam")
    yield line("SparseAdam", "LazyAdam")
    yield line(
        "Rprop",
        "Rprop",
        arguments={
            "eta_minus": "etas[0]",
            "eta_plus": "etas[1]",
            "min_step_size": "step_sizes[0]",
            "max_step_size": "step_sizes[1]",
        },
    )
    yield line("ASGD", "ASGD")
    yield line(
        "NAdam",
        "NadamW",
        _DECAYING,
        {"decoupled_weight_decay": True},
        instance=_SOME_DECAY,
    )
    yield line(
        "Adafactor",
        "",
        differs="epsilon is the least mean of squares, where ours is added to them",
    )
    yield line("Muon", "", differs="it orthogonalises in bfloat16, whatever the dtype")
    yield line("LBFGS", "", differs="it needs the loss, not only its gradient")


def _optax() -> Iterator[Dialect]:
    line = _of("optax")
    trace = {"momentum": "trace"}
    root = {"epsilon_root": "eps_root"}
    yield line("adam", "CorrectedAdam", arguments=root)
    decaying = {"arguments": root, "instance": _SOME_DECAY}
    yield line("adamw", "CorrectedAdam", _DECAYING, **decaying)
    amsgrad = {"amsgrad": True, "correct_first": True}
    yield line("amsgrad", "CorrectedAdam", amsgrad, arguments=root)
    norm = {"v": "nu"}
    yield line("adamax", "Adamax", {"epsilon_inside": True}, slots=norm)
    yield line("adamaxw", "AdamaxW", {"epsilon_inside": True}, slots=norm)
    yield line("adagrad", "Adagrad", {"epsilon_inside": True})
    yield line("sgd", "SGD", {"momentum": 0.0})
    yield line("sgd", "Momentum", arguments=_NESTEROV, slots=trace)
    yield line("sign_sgd", "SignSGD")
    yield line("signum", "Signum", slots={"m": "ema"})
    yield line("adadelta", "Adadelta")
    for inside in (True, False):
        yield line(
            "rmsprop",
            "RMSprop",
            {"epsilon_inside": inside},
            arguments={"epsilon_inside": "eps_in_sqrt"},
            slots={"momentum": "-trace"},
        )
    yield line("nadam", "Nadam", {"schedule_decay": 1e6}, arguments=_NO_SCHEDULE)
    yield line(
        "nadamw",
        "NadamW",
        {"schedule_decay": 1e6, **_DECAYING},
        arguments=_NO_SCHEDULE,
        instance=_SOME_DECAY,
    )
    yield line("lamb", "LAMB")
    yield line(
        "lars",
        "LARS",
        arguments={"eeta": "trust_coefficient", "weight_decay_rate": "weight_decay"},
        slots={"momentum": "-trace"},
    )
    yield line("fromage", "Fromage")
    yield line("novograd", "NovoGrad", slots={"m": ""}, constant_rate=True)
    yield line(
        "optimistic_gradient_descent",
        "OptimisticGradientDescent",
        slots={"previous_gradient": ""},
    )
    yield line("optimistic_adam_v2", "OptimisticAdam", slots={"direction": ""})
    yield line(
        "cocob",
        "COCOB",
        {"learning_rate": 1.0},
        arguments={"learning_rate": "", "epsilon": "eps"},
        slots=dict.fromkeys(_COCOB, ""),
        constant_rate=True,
        differs="a learning rate scales the gradients, where ours scales the step",
    )
    yield line("sm3", "", differs="a weight without axes ends it")
    yield line(
        "adafactor",
        "",
        differs="it factors the two largest axes, if both have 128 entries, where ours "
        "factors the last two",
    )
    yield line(
        "muon",
        "",
        differs="it corrects the bias of Nesterov's momentum, and scales by the shape "
        "the other way round",
    )
    yield line(
        "adan",
        "",
        differs="1 - beta_2 is the factor of a difference of gradients, where the "
        "authors have beta_2",
    )
    yield line("radam", "RectifiedAdam", arguments={"sma_threshold": "threshold"})
    yield line("lion", "Lion", _DECAYING, instance=_SOME_DECAY)
    yield line("yogi", "OptaxYogi")
    yield line(
        "adabelief",
        "AdaBelief",
        {"rectify": False, "epsilon": 1e-6},
        {"eps": 1e-6, "eps_root": 1e-6},
        arguments={"epsilon": ""},
        differs="epsilon has two values, of which eps_root is added to the moment",
    )
    yield line("rprop", "Rprop", slots={"prev": "", "step_size": ""})


def _keras(library: str) -> Iterator[Dialect]:
    """Keras 3, and the optimizers of tf_keras from which it comes."""
    line = _of(library)
    inside = {"epsilon_inside": True, **_EVERY_ROW}
    yield line("Adagrad", "Adagrad", inside)
    for name in ("SGD", "Adam", "Adamax", "Adadelta", "Ftrl", "Lion"):
        yield line(name, name, _EVERY_ROW)
    factored = {"r": "_r", "c": "_c", "v": "_v"}
    relative = {"relative_step": True, **_EVERY_ROW}
    ignored = "relative_step=False has no effect"
    yield line("Adafactor", "Adafactor", relative, slots=factored, differs=ignored)
    if library == "keras":
        adam = {"momentum": "momentums", "velocity": "adam_velocities"}
        yield line("Muon", "Muon", _EVERY_ROW, slots=adam)
        velocity = {"offset": "", "velocity": "_velocities"}
        free = line("ScheduleFreeAdamW", "ScheduleFreeAdamW", _EVERY_ROW)
        yield replace(free, slots=velocity)
        yield line("Lamb", "LAMB", {"decay_first": True, **_EVERY_ROW})
    yield line("AdamW", "AdamW", {**_EVERY_ROW, **_DECAYING})
    constant = {"schedule_decay": 1.0, **_EVERY_ROW}
    yield line("Nadam", "Nadam", constant, arguments=_NO_SCHEDULE)
    yield line("RMSprop", "RMSprop", inside)


def _legacy() -> Iterator[Dialect]:
    line = _of("tf_keras.legacy")
    for name in (
        "SGD",
        "Adagrad",
        "Adadelta",
        "RMSprop",
        "Adam",
        "Adamax",
        "Nadam",
        "Ftrl",
    ):
        yield line(name, name)


def _addons() -> Iterator[Dialect]:
    line = _of("addons")
    for name in ("LazyAdam", "RectifiedAdam", "AdaBelief", "Yogi", "ProximalAdagrad"):
        yield line(name, name)
    for name in ("AdamW", "SGDW"):
        yield line(name, name)


DIALECTS: tuple[Dialect, ...] = (
    *_torch(),
    *_optax(),
    *_keras("keras"),
    *_keras("tf_keras"),
    *_legacy(),
    *_addons(),
)
"""The map. Where an optimizer has several lines, options choose among them."""


def lines_of(target: str) -> Iterator[Dialect]:
    """The lines for ``"torch:Adam"``, in the order of the map."""
    return (line for line in DIALECTS if line.target == target)
