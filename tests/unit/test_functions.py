"""Functions that a configuration names."""

import math
import sys

import pytest

from rollout.api.options import check_function_name, load_function, takes
from rollout.errors import ConfigError


def test_a_function_is_loaded_by_its_name():
    assert load_function("math:sqrt") is math.sqrt
    assert load_function("collections:OrderedDict.fromkeys")("ab") == {"a": None, "b": None}


@pytest.mark.parametrize("name", ["", "module", ":act", "module:"])
def test_another_form_is_refused_before_anything_is_imported(name):
    with pytest.raises(ConfigError, match="expected 'module:function'"):
        check_function_name(name)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("no_such_module:act", None, "no_such_module.*cannot be imported.*PYTHONPATH"),
        ("math:sqr", None, "math has no 'sqr'.*Nearest: sqrt"),
        ("math:pi", None, "expected a function, got float"),
        ("os.path:join", 0, r"called with 0 arguments, got \(a, \*p\)"),
        ("bisect:insort", 1, "called with 1 argument, got"),
    ],
)
def test_what_cannot_be_called_is_refused(name, arguments, said):
    with pytest.raises(ConfigError, match=said):
        load_function(name, arguments)


def test_a_function_without_a_signature_is_believed():
    assert takes(sys.intern, 1)
    assert takes(type, 1)
    assert not takes(type, 3, unknown=False)
