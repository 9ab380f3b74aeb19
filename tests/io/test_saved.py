"""Saved models: equal answers in a new process, and nothing that a file can do but be refused."""

import contextlib
import copy
import json
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import thirdmoment as tm
from tests.io import on_disk
from tests.test_way_of_a_fit import rows, slopes
from thirdmoment.datasets import make_lda_corpus
from thirdmoment.exceptions import InvalidInput
from thirdmoment.io import saved

pytestmark = [
    pytest.mark.filterwarnings("ignore::thirdmoment.exceptions.ThirdMomentWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

WORDS = [f"word{j}" for j in range(60)]
CODES = (rows() > 2).astype(int)
SIX = np.column_stack([rows(), rows(1)[:, :2]])


def corpus():
    return make_lda_corpus(300, 60, 3).X


def topics(model):
    return model.fit(corpus(), feature_names=WORDS)


MODELS = {
    "lda": lambda: topics(tm.LatentDirichletAllocation(3, random_state=np.random.RandomState(3))),
    "single": lambda: topics(tm.SingleTopicModel(3)),
    "poisson": lambda: topics(tm.PoissonTopicModel(3)),
    "gaussian": lambda: tm.GaussianMixture(2, covariance_type="full").fit(rows()),
    "stream": lambda: tm.GaussianMixture(2, covariance_type="tied").partial_fit(rows()),
    "views": lambda: tm.MultiViewMixture(2).fit(SIX),
    "classes": lambda: tm.CategoricalMixture(2).fit(CODES),
    "chain": lambda: tm.GaussianHMM(2).fit(rows()),
    "symbols": lambda: tm.CategoricalHMM(2).fit(CODES[:, :1]),
    "marks": lambda: tm.BernoulliHMM(2).fit(CODES),
    "kernel": lambda: tm.KernelMixture(2).fit(rows()),
    "wide kernel": lambda: tm.KernelMixture(2, views=[[0, 1, 2], [3], [4]]).fit(SIX),
    "regression": lambda: tm.MixedLinearRegression(2).fit(rows(), slopes(rows())),
    "subspaces": lambda: tm.SubspaceClustering(2, 1).fit(rows()),
    "layers": lambda: tm.SubspaceClustering(2, [1, 2]).fit(rows()),
    "factors": lambda: tm.IndependentFactors(2).fit(rows()),
    "search": lambda: tm.TopicSearch(3).fit(corpus(), feature_names=WORDS),
    "group search": lambda: tm.GaussianSearch(2).fit(rows()),
    "line search": lambda: tm.RegressionSearch(2).fit(rows(), slopes(rows())),
    "flat search": lambda: tm.SubspaceSearch(2, 1).fit(rows()),
}


def answers(model):
    """What a fitted model says, to the last bit."""
    X, out = rows(5, 40), [type(model).__name__, str(model.report_), model.report_.full()]
    if isinstance(model, tm.TopicSearch):
        found = model.search("word1")
        return [*out, found.parameters, found.documents(5), found.top_words(5), str(found.report)]
    if isinstance(model, tm.GaussianSearch | tm.SubspaceSearch):
        found = model.search(rows()[:3])
        return [*out, found.parameters, str(found.report)]
    if isinstance(model, tm.RegressionSearch):
        return [*out, model.search(rows()[:9], slopes(rows())[:9]).parameters]
    if hasattr(model, "top_words"):
        counts = corpus()[:20]
        out += [model.top_words(3), model.components_]
        done = (
            model.transform(counts) if hasattr(model, "transform") else model.score_samples(counts)
        )
        return [*out, done]
    if isinstance(model, tm.CategoricalMixture | tm.BernoulliHMM):
        X = CODES[:40]
    elif isinstance(model, tm.CategoricalHMM):
        X = CODES[:40, :1]
    elif model.n_features_in_ == 6:
        X = SIX[:40]
    done = [model.predict(X)] if hasattr(model, "predict") else [model.transform(X)]
    if hasattr(model, "predict_proba"):
        done += [model.predict_proba(X), model.score_samples(X)]
    return [*out, *done]


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def models():
    return {name: make() for name, make in MODELS.items()}


def test_every_public_estimator_is_saved_here(models):
    public = {n for n in tm.__all__ if hasattr(getattr(tm, n), "fit")}
    assert {type(model).__name__ for model in models.values()} == public


def test_a_new_process_gives_equal_answers(models, folder):
    for name, model in models.items():
        model.save(folder / name)
        (folder / f"{name}.expected").write_bytes(pickle.dumps(answers(model)))
    script = (
        "import sys, pickle, warnings; from pathlib import Path; warnings.simplefilter('ignore')\n"
        "import thirdmoment as tm; from tests.io.test_saved import MODELS, answers, assert_equal\n"
        "folder = Path(sys.argv[1])\n"
        "for name in MODELS:\n"
        "    expected = pickle.loads((folder / f'{name}.expected').read_bytes())\n"
        "    assert_equal(answers(tm.load(folder / name)), expected)\n"
        "print('equal', len(MODELS))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["equal", str(len(MODELS))], done.stderr


def test_saving_again_changes_nothing(models, folder):
    for name, model in models.items():
        model.save(folder / "one")
        tm.load(folder / "one").save(folder / "two")
        assert (folder / "one").stat().st_size == (folder / "two").stat().st_size, name
        with zipfile.ZipFile(folder / "one") as a, zipfile.ZipFile(folder / "two") as b:
            assert [(e.filename, e.CRC) for e in a.infolist()] == [
                (e.filename, e.CRC) for e in b.infolist()
            ], name


def test_a_model_that_was_loaded_goes_on_learning(models, folder):
    model = pickle.loads(pickle.dumps(models["stream"]))
    model.save(folder / "stream")
    again = tm.load(folder / "stream")
    np.testing.assert_array_equal(
        again.partial_fit(rows(7)).means_, model.partial_fit(rows(7)).means_
    )


def test_a_prepared_corpus_stays_on_disk(models, folder):
    models["search"].save(folder / "search")
    found = tm.TopicSearch.load(folder / "search")
    assert on_disk(found.index_.W)
    assert on_disk(found.index_.X.data)
    assert on_disk(found.index_.X.indices)
    assert all(part.flags.aligned for part in (found.index_.W, found.index_.X.data))
    models["gaussian"].save(folder / "model")
    assert not on_disk(tm.load(folder / "model").means_)


def test_what_cannot_be_saved_is_named(tmp_path):
    model = tm.KernelMixture(2, kernel=lambda A, B: np.exp(-np.abs(A[:, :1] - B[:, 0])))
    model.fit(rows())
    with pytest.raises(InvalidInput, match=r"KernelMixture\.kernel is a builtins.function"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match="missing/model"):
        tm.GaussianMixture(2).fit(rows()).save(tmp_path / "missing" / "model")
    with pytest.raises(ValueError, match="not fitted"):
        tm.GaussianMixture(2).save(tmp_path / "model")


def test_another_class_is_named(models, folder):
    models["gaussian"].save(folder / "gaussian")
    with pytest.raises(InvalidInput, match="holds a GaussianMixture, not a GaussianHMM"):
        tm.GaussianHMM.load(folder / "gaussian")
    with pytest.raises(FileNotFoundError):
        tm.load(folder / "nothing there")


def test_a_pickle_is_refused_and_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was run",))

    (tmp_path / "evil").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InvalidInput, match="no saved model"):
        tm.load(tmp_path / "evil")


@pytest.mark.parametrize("name", ["gaussian", "search", "kernel"])
@pytest.mark.parametrize("count", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_flips_and_cuts_are_refused_or_harmless(models, tmp_path, name, count):
    models[name].save(tmp_path / "whole")
    whole, expected = (tmp_path / "whole").read_bytes(), answers(models[name])
    rng, refused = np.random.default_rng(count), 0
    for number in range(count):
        broken = bytearray(whole)
        if number % 3 == 2:
            broken = broken[: rng.integers(len(broken))]
        else:
            for place in rng.integers(len(broken), size=1 + number % 2):
                broken[place] ^= 1 << rng.integers(8)
        (tmp_path / "broken").write_bytes(broken)
        try:
            found = tm.load(tmp_path / "broken")
        except InvalidInput:
            refused += 1
            continue
        assert_equal(answers(found), expected)
    assert refused > count / 2  # flips between the entries change nothing


def hostile(folder, change, arrays=lambda name, data: data):
    """A file whose header was changed, with checksums that fit."""
    with (
        zipfile.ZipFile(folder / "whole") as old,
        zipfile.ZipFile(folder / "hostile", "w", zipfile.ZIP_STORED) as new,
    ):
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == saved.HEADER:
                header = json.loads(data)
                data = json.dumps(change(header) or header).encode()
            new.writestr(entry.filename, arrays(entry.filename, data))
    return folder / "hostile"


def set_model(**changes):
    return lambda header: header["model"].update(changes)


def set_field(name, value):
    return lambda header: header["model"]["fields"].update({name: value})


HOSTILE = {
    "another format": lambda header: header.update(format=2),
    "no format": lambda header: header.pop("format"),
    "a list": lambda header: [1, 2],
    "a class of Python": set_model(**{"class": "eval"}),
    "a module": set_model(**{"class": "os.system"}),
    "no model": set_model(**{"class": "Units"}),
    "deep": lambda header: header["model"]["fields"].update(
        tol=json.loads("[" * 900 + "1" + "]" * 900)
    ),
    "an array twice": set_field("weights_", {"array": 0}),
    "an array that is not there": set_field("weights_", {"array": 10**6}),
    "a negative array": set_field("weights_", {"array": -1}),
    "another kind": set_field("weights_", {"_array": 0}),
    "text for numbers": set_field("n_features_in_", "many"),
    "other columns": set_field("n_features_in_", 10**9),
    "no arguments": lambda header: header["model"]["fields"].pop("tol"),
    "nothing fitted": lambda header: header["model"].update(fields={}),
    "another layout": set_field("_saved_layout", {"tuple": [0, 0]}),
    "more arrays": lambda header: header.update(arrays=10**9),
    "a type of objects": set_field("verbose", {"dtype": "O"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused(models, tmp_path, name):
    models["lda"].save(tmp_path / "whole")
    path = hostile(tmp_path, HOSTILE[name])
    with pytest.raises(InvalidInput, match=r"no saved model|no model|damaged|layout"):
        tm.load(path)


def leaves(tree, path=()):
    """Places of all values in a header."""
    if isinstance(tree, dict | list) and tree:
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, (*path, key))
    else:
        yield path


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def swapped(rng):
    """A change of one or two values of a header: another value of it, or one of a list."""
    foreign = [None, 0, -1, 1, 7, 10**12, 1e308, "", "x", True, [], {}, [[0]]]

    def change(header):
        places = list(leaves(header["model"]))
        for _ in range(rng.integers(1, 3)):
            path = places[rng.integers(len(places))]
            other = at(header["model"], places[rng.integers(len(places))])
            value = other if rng.random() < 0.5 else foreign[rng.integers(len(foreign))]
            with contextlib.suppress(KeyError, IndexError, TypeError):
                at(header["model"], path[:-1])[path[-1]] = value

    return change


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_headers_with_other_values_are_refused_or_harmless(models, tmp_path, name, count):
    """Checksums fit, so that some load; what they then say may be wrong, but nothing crashes."""
    models[name].save(tmp_path / "whole")
    rng = np.random.default_rng([count, list(MODELS).index(name)])
    for _ in range(count):
        path = hostile(tmp_path, swapped(rng))
        with contextlib.suppress(InvalidInput):
            found = tm.load(path)
            with contextlib.suppress(Exception):
                answers(found)


def test_topics_of_other_shapes_are_refused(models, tmp_path):
    """Compiled loops believe in shapes: a file must not lie about them."""
    models["lda"].save(tmp_path / "whole")

    def shorter(name, data):
        return data.replace(b"(3, 60)", b"(6, 30)") if name.endswith(".npy") else data

    with pytest.raises(InvalidInput, match=r"components|shape"):
        tm.load(hostile(tmp_path, lambda header: None, shorter))


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("chain", "transmat_", np.full((2, 1), 0.5)),
        ("symbols", "transmat_", np.full((2, 1), 0.5)),
        ("symbols", "emissionprob_", np.full((1, 2), 0.5)),
        ("symbols", "emissionprob_", np.full((2, 1), 1.0)),
        ("marks", "emissionprob_", np.full((1, 4), 0.5)),
        ("chain", "means_", np.zeros((1, 4))),
        ("gaussian", "weights_", np.ones(1)),
        ("gaussian", "means_", np.zeros((2, 1))),
        ("gaussian", "covariances_", np.zeros((7, 4, 4))),
        ("lda", "weights_", np.array([np.nan, 0.5, 0.5])),
        ("lda", "components_", [[0.5] * 60] * 2),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(models, tmp_path, name, field, value):
    model = pickle.loads(pickle.dumps(models[name]))
    setattr(model, field, value)
    model.save(tmp_path / "model")
    with pytest.raises(InvalidInput, match="no saved model"):
        tm.load(tmp_path / "model")


def test_a_random_state_that_points_outside_itself_is_refused(models, tmp_path):
    models["lda"].save(tmp_path / "whole")

    def far(header):
        header["model"]["fields"]["random_state"]["random"][2] = 10**9

    with pytest.raises(InvalidInput, match="random state"):
        tm.load(hostile(tmp_path, far))


def test_arrays_of_objects_and_compressed_entries_are_refused(models, tmp_path):
    models["gaussian"].save(tmp_path / "whole")

    def objects(name, data):
        if name != "arrays/0.npy":
            return data
        return data[:10] + data[10:].replace(b"'<f8'", b"'|O' ", 1)

    with pytest.raises(InvalidInput):
        tm.load(hostile(tmp_path, lambda header: None, objects))
    with (
        zipfile.ZipFile(tmp_path / "whole") as old,
        zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
    with pytest.raises(InvalidInput, match="compressed"):
        tm.load(tmp_path / "bomb")


def test_known_classes_are_where_they_are_said_to_be():
    for name in saved.KNOWN:
        assert saved.known_class(name).__name__ == name


def test_tables_of_kernel_mixtures_belong_to_their_views(tmp_path):
    """Compiled loops would read beyond them."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:100] += 4

    def spoiled(change):
        model = tm.KernelMixture(2).fit(X)
        change(model)
        model.save(tmp_path / "k.tm")
        with pytest.raises(InvalidInput, match="no saved model"):
            tm.load(tmp_path / "k.tm")

    def longer(model):
        view = model._family.views[0]
        more = np.concatenate(
            [view.axes[0].numbers[0] - 1 - np.arange(9)[::-1], view.axes[0].numbers]
        )
        view.axes[0] = view.axes[0]._replace(numbers=more)

    spoiled(lambda model: setattr(model._family, "place", [slice(0, 1)] * 3))
    spoiled(lambda model: setattr(model, "_tables", model._tables[:, :-1]))
    spoiled(lambda model: setattr(model, "view_groups_", [np.array([7])] * 3))
    spoiled(longer)


def test_exact_values_and_ranges_can_be_saved(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=(300, 1))
    X = np.column_stack(
        [rng.normal(3 * z), rng.normal(3 * z), rng.integers(3, size=300) + 2 * z[:, 0]]
    )
    views = [range(0, 1), range(1, 2), range(2, 3)]
    for model in (
        tm.KernelMixture(2, views=views, kernel=["rbf", "rbf", "delta"]),
        tm.MultiViewMixture(2, views=views),
    ):
        model.fit(X).save(tmp_path / "a.tm")
        again = tm.load(tmp_path / "a.tm")
        assert again.views == views
        np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


def test_entries_that_overlap_are_refused(tmp_path):
    """A bomb of stored entries: each would hold the next one."""
    import struct
    import zlib

    inner = b"\x93NUMPY\x01\x00" + bytes(1000)
    body, offsets = b"", []
    names = ["header.json", *(f"arrays/{i}.npy" for i in range(50))]
    central = b""
    for name in names:
        offsets.append(len(body))
        head = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 0, zlib.crc32(inner),
                           len(inner), len(inner), len(name), 0)  # fmt: skip
        body += head + name.encode()
    body += inner
    for name, offset in zip(names, offsets, strict=True):
        central += struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, zlib.crc32(inner),
                               len(inner), len(inner), len(name), 0, 0, 0, 0, 0,
                               offset) + name.encode()  # fmt: skip
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, len(names), len(names), len(central),
                      len(body), 0)  # fmt: skip
    (tmp_path / "bomb.tm").write_bytes(body + central + end)
    with pytest.raises(InvalidInput, match="they overlap"):
        tm.load(tmp_path / "bomb.tm")


def test_devices_are_no_place_for_a_model(tmp_path):
    model = tm.GaussianMixture(2).fit(np.random.default_rng(0).normal(size=(50, 3)))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InvalidInput, match="is a device"):
        model.save(pipe)
    assert pipe.is_fifo()


def test_arguments_that_would_hang_are_refused(tmp_path):
    model = tm.LatentDirichletAllocation(2).fit(tm.datasets.make_lda_corpus(100, 20, 2).X)
    for name, value in (("n_jobs", float("nan")), ("n_jobs", "x"), ("input_unit_", -5.0),
                        ("input_unit_", None), ("words_", ["one"])):  # fmt: skip
        spoiled = copy.copy(model)
        setattr(spoiled, name, value)
        spoiled.save(tmp_path / "a.tm")
        with pytest.raises(InvalidInput, match="no saved model"):
            tm.load(tmp_path / "a.tm")
