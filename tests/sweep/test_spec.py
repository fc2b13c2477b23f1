"""Bad specifications are one clear message with file, line and what would be right."""

import re

import pytest

from cgratio.results.words import Part
from cgratio.sweep.document import SpecError
from cgratio.sweep.spec import load_spec

GOOD = "name: a\naxes:\n  actors: [1, 2]\n"


def write(tmp_path, text):
    path = tmp_path / "s.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("name: a\naxes:\n  actorz: 1\n", 3, "unknown key axes.0.actorz; did you mean actors?"),
        ("name: a\naxes:\n  - actors: 1\n  - {actorz: 1}\n", 4, "unknown key axes.1.actorz"),
        (GOOD + "sentinel-every: 3\n", 4, "unknown key sentinel-every; did you mean sentinel_every?"),
        (GOOD + "trial: {max-s: 3}\n", 4, "unknown key trial.max-s; did you mean max_s?"),
        ("name: a\naxes: {actor-cpus: 1}\n", 2, "unknown key axes.0.actor-cpus; did you mean actor_cpus?"),
        (GOOD + "replicate: 3\n", 4, "unknown key replicate; did you mean replicates?"),
        (GOOD + "trainer:\n  lr: 0.1\n", 5, "unknown key trainer.lr; known here:"),
        ("name: a\naxes:\n  actors: [1, two]\n", 3, "not 'two'"),
        ("name: a\naxes:\n  actors: 2.5\n", 3, "not 2.5"),
        ("name: a\naxes:\n  actors: 0\n", 3, "greater than or equal to 1, not 0"),
        ("name: a\naxes:\n  actors: .inf\n", 3, "not inf"),
        ("name: a\naxes:\n  actors: []\n", 3, "the list is empty"),
        ("name: a\naxes:\n  actors: [1, 1]\n", 3, "a value stands here twice"),
        ("name: a\naxes:\n  sm_share: 1.5\n", 3, "less than or equal to 1, not 1.5"),
        ("name: a\naxes:\n  sm_share: .nan\n", 3, "not nan"),
        ("name: a\naxes:\n  pinning: tight\n", 3, "not 'tight'"),
        ("name: a\naxes:\n  device: tpu\n", 3, "not 'tpu'"),
        ("name: a\naxes: []\n", 2, "at least 1"),
        ("axes: {actors: 1}\n", None, "name: Field required"),
        (GOOD + "replicates: true\n", 4, "not True"),
        (GOOD + "trial:\n  max_s: 3\n", 4, "max_s is 3, too short"),
        (GOOD + "power_model: {idle_w: 50, max_w: 40}\n", 4, "must be above idle_w, 50"),
        ("name: a\nname: b\naxes: {actors: 1}\n", 2, "the key name stands here twice"),
        ("name: a\naxes: {actors: [1, 2\n", None, "is not YAML"),
        ("name: a\naxes: &x {part: *x}\n", None, "an alias (*) holds itself"),
        ("name: a\naxes: {actors: &a [*a]}\n", None, "an alias (*) holds itself"),
        ("name: a\naxes: " + "[" * 3000 + "]" * 3000, None, "nested too deeply"),
        ("- 1\n", None, "must hold a mapping"),
        ("", None, "must hold a mapping"),
    ],
)
def test_says_where_and_what_would_be_right(tmp_path, text, line, message):
    path = write(tmp_path, text)
    with pytest.raises(SpecError) as error:
        load_spec(path)
    said = str(error.value)
    assert said.startswith(f"{path}:{line}: " if line else f"{path}"), said
    assert message in said
    assert "\n" not in said


def test_a_missing_file_and_one_that_is_not_text(tmp_path):
    with pytest.raises(SpecError, match="cannot be read: No such file"):
        load_spec(tmp_path / "none.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="is not UTF-8 text"):
        load_spec(tmp_path / "b.yaml")


def test_one_value_or_many_one_grid_or_many(tmp_path):
    spec = load_spec(write(tmp_path, "name: a\naxes:\n  - {part: supply, actors: 4}\n  - {actors: [1, 2]}\n"))
    assert [grid.actors for grid in spec.axes] == [[4], [1, 2]]
    assert [grid.part for grid in spec.axes] == [[Part.SUPPLY], [Part.WHOLE]]


@pytest.mark.parametrize(
    ("setting", "read"),
    [
        ("trainer.unroll=40", lambda spec: spec.axes[0].unroll_length == [40]),
        ("trainer.discount=0.5", lambda spec: spec.trainer.discount == 0.5),
        ("axes.actors=[8, 16]", lambda spec: spec.axes[0].actors == [8, 16]),
        ("axes.batch=4", lambda spec: spec.axes[0].learner_batch == [4]),
        ("trial.max_s=99", lambda spec: spec.trial.max_s == 99),
        ("replicates=7", lambda spec: spec.replicates == 7),
        ("name=b=c", lambda spec: spec.name == "b=c"),
    ],
)
def test_settings_replace_what_the_file_says(tmp_path, setting, read):
    assert read(load_spec(write(tmp_path, GOOD), overrides=(setting,)))


def test_a_setting_reaches_every_grid(tmp_path):
    path = write(tmp_path, "name: a\naxes:\n  - {unroll_length: 10}\n  - {part: demand}\n")
    spec = load_spec(path, overrides=("trainer.unroll=40",))
    assert [grid.unroll_length for grid in spec.axes] == [[40], [40]]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("trainer.lr=1", "unknown key trainer.lr"),
        ("replicates", "write it as --set key=value"),
        ("replicates=[", "the value is not YAML"),
        ("name.x=1", "name is not a group of settings"),
        ("axes.actors=[]", "the list is empty"),
    ],
)
def test_a_bad_setting_is_refused(tmp_path, setting, message):
    with pytest.raises(SpecError, match=re.escape(message)):
        load_spec(write(tmp_path, GOOD), overrides=(setting,))
