"""Faults that people made are detected, and named at first place."""

from __future__ import annotations

import re
import time
from functools import cache

import pytest

from reference.conformance import diagnose
from reference.conformance.check import Case, _instance, _results, rule_class
from reference.conformance.port import Setting
from reference.conformance.report import Result
from reference.conformance.rounding import FLOAT32
from tests.conformance import known_faults
from tests.conformance.known_faults import FAULTS, RIGHT, Numpy, NumpyPort, right_for

EACH_KIND = (
    "AlgorithmOne",
    "BetasSwapped",
    "HiddenRateOutside",
    "L2Unasked",
    "LastRowKept",
    "SlotsLost",
    "ClippedBeforeSum",
)
"""One fault of each kind; all of them take minutes."""


@cache
def failures(fault: type[Numpy]) -> tuple[Result, ...]:
    name, options = right_for(fault)
    optimizer = _instance(rule_class(name), options)
    port, setting = NumpyPort(fault), Setting(FLOAT32)
    case = Case(port, optimizer, fault.__name__, setting, whole=True, must_run=False)
    results, _ = _results(case, seed=0, strict=False, thorough=True)
    return tuple(result for result in results if not result.conforms)


def is_named(fault: type[Numpy]) -> bool:
    first = [r.explanations[0] for r in failures(fault) if r.explanations]
    return len(first) == len(failures(fault)) > 0 and all(
        re.match(FAULTS[fault], explanation.sentence)
        and explanation.reproduces.startswith(("everything", "all but"))
        for explanation in first
    )


@pytest.mark.parametrize("right", RIGHT, ids=lambda cls: cls.__name__)
def test_the_right_ones_conform(right):
    assert failures(right) == ()


@pytest.mark.parametrize("name", EACH_KIND)
def test_a_fault_is_named_at_first_place(name):
    fault = getattr(known_faults, name)
    assert is_named(fault), [r.explanations[:1] for r in failures(fault)]


@pytest.mark.slow
def test_all_faults_are_detected_and_nearly_all_are_named(monkeypatch):
    monkeypatch.setattr(diagnose, "SECONDS", 60.0)
    assert [fault.__name__ for fault in FAULTS if not failures(fault)] == []
    unnamed = [fault.__name__ for fault in FAULTS if not is_named(fault)]
    assert len(unnamed) <= len(FAULTS) * 5 // 100, unnamed


@known_faults.named("nothing")
class Nonsense(known_faults.Adam):
    """Several faults at once, none of which anybody makes."""

    def update(self, w, g, s, t, lr):
        m, v = s["m"] / 3 + g**3 / (1 + g * g), s["v"] * 0.7 + abs(g) / (2 + t)
        return w - lr * m * (1 + v) / (3 + v * v * t), {"m": m, "v": v}


FAULTS.pop(Nonsense)


def test_where_nothing_fits_the_search_ends_in_time_and_says_so():
    start = time.process_time()
    found = failures(Nonsense)
    assert {r.gradient for r in found} == {"dense", "sparse"}
    for result in found:
        assert not any(e.reproduces == "everything" for e in result.explanations)
    assert time.process_time() - start < 2 * (diagnose.SECONDS + 2)
