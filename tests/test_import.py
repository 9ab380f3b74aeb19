"""What an import costs, and that every name is where it is said to be."""

import subprocess
import sys

import pytest

import thirdmoment as tm

HEAVY = ("sklearn", "scipy", "numba", "matplotlib", "pandas", "torch", "numpy")


def loaded(code):
    """Heavy packages that a fresh process has loaded after the code."""
    show = f"import sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = [sys.executable, "-c", f"{code}; {show}"]
    return eval(subprocess.run(run, capture_output=True, text=True, check=True).stdout)


def test_the_package_alone_loads_nothing():
    assert loaded("import thirdmoment") == []


def test_a_model_loads_no_compiler_and_no_pictures():
    found = loaded("import thirdmoment as tm; tm.GaussianMixture")
    assert not {"numba", "matplotlib", "torch"} & set(found)


def test_data_sets_need_no_statistics():
    check = "import sys; assert 'scipy.stats' not in sys.modules"
    loaded(f"import thirdmoment as tm; tm.datasets; {check}")


@pytest.mark.parametrize("package", [tm, tm.models, tm.search])
def test_every_name_is_there(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="module 'thirdmoment' has no attribute 'LDA'"):
        _ = tm.LDA
