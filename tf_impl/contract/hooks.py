"""Lines on the hooks of a class: what it overrides, and whether it can be called."""

import inspect

from tf_impl.contract.examine import Subject, line
from tf_impl.legacy_keras import OptimizerV2

# What the base class passes by position.
HOOKS = {
    "_create_slots": ["var_list"],
    "_prepare": ["var_list"],
    "_prepare_local": ["var_device", "var_dtype", "apply_state"],
    "_resource_apply_dense": ["grad", "var"],
    "_resource_apply_sparse": ["grad", "var", "indices"],
    "_resource_apply_sparse_duplicate_indices": ["grad", "var", "indices"],
    "_transform_gradients": ["grads_and_vars"],
    "_transform_loss": ["loss"],
    "get_config": [],
    "apply_gradients": ["grads_and_vars"],
}
# Which signature decides whether `apply_state` is passed, and what else comes by name.
DECIDES = {
    "_resource_apply_dense": "_resource_apply_dense",
    "_resource_apply_sparse": "_resource_apply_sparse",
    "_resource_apply_sparse_duplicate_indices": "_resource_apply_sparse",
}


def overridden(subject: Subject) -> list[str]:
    return [
        hook
        for hook in HOOKS
        if inspect.getattr_static(subject.cls, hook)
        is not inspect.getattr_static(OptimizerV2, hook)
    ]


def signatures_of(subject: Subject) -> list[dict[str, str]]:
    cases = []
    for hook in overridden(subject):
        named = []
        if hook in DECIDES:
            deciding = getattr(subject.cls, DECIDES[hook])
            if "apply_state" in inspect.getfullargspec(deciding).args:
                named = ["apply_state"]
        if hook == "apply_gradients" and getattr(
            subject.cls, "_HAS_AGGREGATE_GRAD", False
        ):
            named = ["experimental_aggregate_gradients"]
        case = {"hook": hook, "passed": ["self", *HOOKS[hook]], "named": named}
        cases.append({name: repr(value) for name, value in case.items()})
    return cases


def updates_of(subject: Subject) -> list[dict[str, str]]:
    return [
        {"hook": repr(hook), "passed": repr(["self", *HOOKS[hook]])}
        for hook in overridden(subject)
        if hook.startswith("_resource_apply")
    ]


@line("hooks have their names", step=False)
def names(cls, base):
    """The base class calls `_resource_apply_dense`; a method without the underscore is
    never called, and nothing says so."""
    hooks = {name for name in dir(base) if name.startswith("_")}
    mistaken = [name for name in vars(cls) if f"_{name}" in hooks - set(dir(cls))]
    mistaken += [
        name for name in vars(cls) if f"_{name}" in hooks and name not in dir(base)
    ]
    assert not mistaken, f"nobody calls {', '.join(mistaken)}: it wants an underscore"


@line("signatures take what is passed", signatures_of, step=False)
def signatures(cls, hook, passed, named):
    """A hook that cannot take what the framework passes is a `TypeError`: at the first
    step, or not before somebody uses a strategy."""
    inspect.signature(getattr(cls, hook)).bind(*passed, **dict.fromkeys(named))
    return hook


@line("apply_state has this very name", updates_of, step=False)
def apply_state(cls, hook, passed):
    """The framework passes `apply_state` to a hook that has an argument of this very
    name; one of another name is never filled."""
    more = list(inspect.signature(getattr(cls, hook)).parameters.values())[
        len(passed) :
    ]
    never = [
        p.name
        for p in more
        if p.name != "apply_state" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    assert not never, f"{hook}: nothing is ever passed as {', '.join(never)}"
