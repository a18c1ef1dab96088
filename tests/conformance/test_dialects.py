"""The map of dialects holds: every line is checked against the installed library."""

from __future__ import annotations

import json

import numpy as np
import pytest

import reference
from reference.cli import CONFORMS, DIFFERS, MISUSE, main
from reference.conformance import check
from reference.conformance.cards import Entry, _explained, label
from reference.conformance.dialects import convert, side_by_side
from reference.conformance.findings import FINDINGS
from reference.conformance.ports import NotInstalled, load, port_for
from reference.dialects import DIALECTS, LIBRARIES, Dialect

NAMES = [f"{line.target}-{line.rule}-{i}" for i, line in enumerate(DIALECTS)]
RULED = [i for i, line in enumerate(DIALECTS) if line.rule]


def installed(target: str):
    try:
        return load(target)
    except NotInstalled as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", NAMES)
def test_a_line_names_what_exists(name):
    line = DIALECTS[int(name.rsplit("-", 1)[1])]
    assert line.library in LIBRARIES
    assert line.rule or line.differs
    if line.rule:
        reference.OPTIMIZERS[line.rule](**line.options)
        port = port_for(installed(line.target), line)
        assert set(line.theirs) <= set(port.parameters)


QUICK = ("torch", "optax")


def names_of(indices):
    return [
        NAMES[i]
        if DIALECTS[i].library in QUICK
        else pytest.param(NAMES[i], marks=pytest.mark.slow)
        for i in indices
    ]


@pytest.mark.parametrize("name", names_of(RULED))
def test_a_line_is_true_of_the_installed_library(name):
    """In one mode, in float32; the report cards run the rest."""
    line = DIALECTS[int(name.rsplit("-", 1)[1])]
    assert_true(line, line.instance)


RMSPROP = [i for i in RULED if DIALECTS[i].rule == "RMSprop"]


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("name", names_of(RMSPROP))
def test_a_line_of_rmsprop_is_true_with_every_option(name, momentum, centered):
    line = DIALECTS[int(name.rsplit("-", 1)[1])]
    assert_true(line, {"momentum": momentum, "centered": centered})


def assert_true(line, options):
    optimizer = reference.OPTIMIZERS[line.rule](**{**line.options, **options})
    report = judged(line, optimizer)
    for result in report.failures:
        entry = Entry(line, label(line, optimizer, set(options)), report)
        assert _explained(entry, result) < len(FINDINGS), str(report)
    assert report.results
    if line.library == "keras":
        # The finding on rows that repeat explains any sparse failure; here no row does.
        report = judged(line, optimizer, scenario="no rows at two steps")
        assert all(r.failure.row != "untouched" for r in report.failures), str(report)


def judged(line, optimizer, **options):
    port = port_for(installed(line.target), line)
    return check(
        port,
        optimizer,
        dtypes=["float32"],
        modes=port.modes()[:1],
        strategies=["none"],
        quick=True,
        constant_rate=line.constant_rate,
        thorough=None,
        **options,
    )


@pytest.mark.slow
def test_a_line_of_keras_3_that_changes_other_rows_would_be_seen():
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras takes sparse gradients on TensorFlow alone")
    wrong = Dialect("keras", "RMSprop", "RMSprop", {"epsilon_inside": True})
    with pytest.raises(AssertionError, match="a row that is untouched"):
        assert_true(wrong, {"momentum": 0.9})


def test_a_false_line_would_be_seen():
    pytest.importorskip("torch", reason="torch is not installed")
    wrong = Dialect("torch", "Adagrad", "Adagrad", arguments={"epsilon": ""})
    report = check(
        port_for(load("torch:Adagrad"), wrong),
        reference.Adagrad(epsilon=1e-3),
        dtypes=["float32"],
        modes=["loop"],
        quick=True,
    )
    assert not report.conforms


def test_options_choose_among_the_lines_of_an_optimizer():
    pytest.importorskip("torch", reason="torch is not installed")
    options = {"dtypes": ["float32"], "modes": ["loop"], "quick": True}
    plain = check("torch:SGD", **options)
    assert plain.conforms, str(plain)
    given = {"momentum": 0.9, "nesterov": True}
    report = check("torch:SGD", hyperparameters=given, **options)
    dense = next(r for r in report.results if r.gradient == "dense")
    assert dense.conforms, str(report)
    assert "momentum" in dense.ratios


def test_side_by_side_shows_names_defaults_and_options():
    shown = side_by_side("adadelta")
    head = shown.splitlines()[0].split()
    assert {x.target for x in DIALECTS if x.name.lower() == "adadelta"} <= set(head)
    pytest.importorskip("torch", reason="torch is not installed")
    assert "lr=1.0" in shown


def test_side_by_side_of_what_is_not_there():
    with pytest.raises(ValueError, match="the map has no 'adamm'"):
        side_by_side("adamm")


class TestConvert:
    @pytest.fixture(autouse=True)
    def needs(self):
        pytest.importorskip("torch", reason="torch is not installed")
        pytest.importorskip("optax", reason="optax is not installed")

    def test_names_are_translated_and_defaults_are_the_source_s(self):
        found = convert("torch:Adadelta", "optax:adadelta", {"rho": 0.75})
        assert found.arguments == {"learning_rate": 1.0, "rho": 0.75, "eps": 1e-6}
        assert found.remark.startswith("for dense gradients") is False

    def test_what_comes_out_takes_the_same_steps(self):
        import jax.numpy as jnp
        import optax
        import torch

        given = {"lr": 0.125, "alpha": 0.75, "eps": 2.0**-10}
        found = convert("torch:RMSprop", "optax:rmsprop", given)
        transformation = optax.rmsprop(**found.arguments)
        w = jnp.ones(3)
        state = transformation.init(w)
        p = torch.nn.Parameter(torch.ones(3))
        theirs = torch.optim.RMSprop([p], **given)
        for g in ([1.0, 0.5, 0.0], [-1.0, 2.0, 0.25]):
            updates, state = transformation.update(jnp.array(g), state, w)
            w = optax.apply_updates(w, updates)
            p.grad = torch.tensor(g)
            theirs.step()
        # Two steps of at most a dozen roundings each, of numbers below 4.
        apart = np.abs(np.asarray(w) - p.detach().numpy())
        assert np.max(apart) <= 2 * 12 * np.finfo(np.float32).eps * 4
        moved = optax.rmsprop(**{**found.arguments, "eps_in_sqrt": True})
        state = moved.init(jnp.ones(3))
        updates, _ = moved.update(jnp.array([1.0, 0.5, 0.0]), state, jnp.ones(3))
        assert updates[1] != 0

    def test_where_none_is_equal_a_small_example_shows_it(self):
        found = convert("torch:Adadelta", "torch:Adagrad", {})
        assert found.arguments is None
        assert "from w = 1 with the gradient" in found.example

    def test_what_the_class_settles_itself_is_settled_for_the_target(self):
        """Legacy Keras has no say where epsilon is; optax has."""
        for momentum, inside in ((0.0, False), (0.5, True)):
            given = {"momentum": momentum}
            found = convert("tf_keras.legacy:RMSprop", "optax:rmsprop", given)
            assert found.arguments["eps_in_sqrt"] is inside

    def test_an_option_of_theirs_chooses_the_line(self):
        given = {"learning_rate": 0.5}
        assert convert("optax:rmsprop", "torch:RMSprop", given).arguments is None
        given = {**given, "eps_in_sqrt": False}
        assert convert("optax:rmsprop", "torch:RMSprop", given).arguments["lr"] == 0.5

    def test_rmsprop_with_epsilon_under_the_root_is_not_torch_s(self):
        for momentum in (0.0, 0.5):
            given = {"momentum": momentum}
            found = convert("tf_keras:RMSprop", "torch:RMSprop", given)
            assert found.arguments is None
            assert found.remark.startswith("it follows rmsprop")
            assert "with the gradient 1e-07" in found.example

    def test_a_velocity_with_the_rate_inside_is_torch_s_while_it_is_constant(self):
        given = {"momentum": 0.5, "lr": 0.5}
        found = convert("torch:RMSprop", "optax:rmsprop", given)
        assert found.arguments["eps_in_sqrt"] is False
        assert found.remark == "equal while the learning rate is constant"

    def test_a_rate_that_may_not_change_is_said(self):
        given = {"momentum": 0.5, "lr": 0.5}
        found = convert("torch:SGD", "tf_keras.legacy:SGD", given)
        assert found.arguments["momentum"] == 0.5
        assert "while the learning rate is constant" in found.remark

    def test_sparse_gradients_that_do_otherwise_are_said(self):
        found = convert("torch:SparseAdam", "tf_keras.legacy:Adam", {})
        assert found.arguments["epsilon"] == 1e-8
        assert "for dense gradients" in found.remark

    def test_weight_decay_comes_along(self):
        found = convert("torch:AdamW", "optax:adamw", {"weight_decay": 0.25})
        assert found.arguments["weight_decay"] == 0.25
        assert convert("torch:Adam", "optax:adamw", {}).arguments["weight_decay"] == 0
        assert convert("torch:AdamW", "optax:adam", {}).arguments is None

    def test_misuse(self):
        with pytest.raises(ValueError, match="torch:Adadelta does not take beta"):
            convert("torch:Adadelta", "optax:adadelta", {"beta": 0.9})
        with pytest.raises(ValueError, match="the map has no torch:Adamm"):
            convert("torch:Adamm", "optax:adadelta", {})
        with pytest.raises(ValueError, match="has no default for learning_rate"):
            convert("optax:adadelta", "torch:Adadelta", {"learning_rate": None}) and (
                convert("optax:sgd", "torch:SGD", {})
            )

    def test_the_command_line(self, capsys, tmp_path):
        path = tmp_path / "found.json"
        arguments = ["convert", "torch:Adadelta", "optax:adadelta"]
        assert main([*arguments, "--json", str(path)]) == CONFORMS
        assert capsys.readouterr().out.startswith("adadelta(learning_rate=1.0")
        assert json.loads(path.read_text())["target"] == "optax:adadelta"
        assert main(["convert", "torch:Adadelta", "torch:Adagrad"]) == DIFFERS
        assert main(["convert", "torch:Adamm", "torch:Adagrad"]) == MISUSE
        assert main(["dialects", "adadelta"]) == CONFORMS
        assert main(["dialects", "adamm"]) == MISUSE
