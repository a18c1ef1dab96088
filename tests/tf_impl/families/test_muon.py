"""Muon: which variables are AdamW's; its configuration."""

from __future__ import annotations

import numpy as np
import pytest

import reference
import tf_impl

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

W = np.array([[1.0, -2.0], [0.5, 4.0]])
G = np.array([[2.0, -4.0], [1.0, 0.5]])
OPTIONS = {"learning_rate": 0.25, "adam_beta_1": 0.5, "adam_beta_2": 0.75}


@pytest.mark.parametrize(
    ("name", "options", "adams"),
    [
        ("kernel", {}, False),
        ("Embedding_1", {}, True),
        ("Embedding_1", {"exclude_embeddings": False}, False),
        ("output", {"exclude_layers": ["^out"]}, True),
        ("kernel", {"exclude_layers": ["^out"]}, False),
    ],
)
def test_names_choose_the_rule(name, options, adams):
    w = tf.Variable(W, name=name)
    muon = tf_impl.Muon(**OPTIONS, **options)
    muon.apply_gradients([(tf.constant(G), w)])
    assert ("velocity" in muon.get_slot_names()) is adams
    if adams:  # of a vector the rule is AdamW's
        due, _ = reference.Muon(**OPTIONS).run(W.ravel(), [G.ravel()])
    else:
        due, _ = reference.Muon(**OPTIONS).run(W, [G])
    # Both compute in float64. Fewer than 100 operations on each side, of numbers up to
    # 4; five steps of Newton and Schulz, each of slope 4 at most.
    bound = 2 * 100 * 4 * 4**5 * np.finfo(np.float64).eps / 2
    assert np.all(np.abs(w.numpy().ravel() - due.ravel()) <= bound)


def test_a_dense_layer_after_an_embedding_is_told_apart():
    muon = tf_impl.Muon()
    variables = [tf.Variable(W, name=name) for name in ("embedding", "dense")]
    muon._create_all_weights(variables)
    assert len(muon.variables()) == 1 + 2 + 1  # iterations; AdamW's two; a momentum


def test_no_weight_decay_may_be_none_as_in_keras():
    muon = tf_impl.Muon(weight_decay=None, adam_weight_decay=None)
    config = muon.get_config()
    assert config["weight_decay"] == config["adam_weight_decay"] == 0


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="`ns_steps` must be 1 or more, not 0"):
        tf_impl.Muon(ns_steps=0)
