"""Bad specifications are one clear message with file, line and what would be right."""

import pytest

from cgratio.results.words import Part
from cgratio.sweep.document import SpecError
from cgratio.sweep.reading import load_spec, located
from cgratio.sweep.spec import GROUPS, Spec

BOMB = "a: &a [0,0,0,0,0,0,0,0,0,0]\n" + "".join(
    f"{here}: &{here} [{','.join(['*' + before] * 10)}]\n"
    for before, here in zip("abcdefg", "bcdefgh", strict=True)
)
GOOD = "name: a\naxes:\n  actors: [1, 2]\n"
EMULATED = "name: a\naxes: {device: emulated}\n"


def write(tmp_path, text):
    path = tmp_path / "s.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("name: a\naxes:\n  actorz: 1\n", 3, "unknown key axes.actorz; did you mean actors?"),
        (
            "name: a\naxes:\n  - actors: 1\n  - {actorz: 1}\n",
            4,
            "unknown key axes.actorz; did you mean actors?",
        ),
        (GOOD + "sentinel-every: 3\n", 4, "unknown key sentinel-every; did you mean sentinel?"),
        (GOOD + "trial: {max-s: 3}\n", 4, "unknown key trial.max-s; did you mean max_s?"),
        ("name: a\naxes: {actor-cpus: 1}\n", 2, "unknown key axes.actor-cpus; did you mean actor_cpus?"),
        ("name: a\naxis: {actors: 1}\n", 2, "unknown key axis; did you mean axes?"),
        (GOOD + "trial: {max_s: 1.0e+300}\n", 4, "it must be seconds above 0, at most 1,000,000"),
        (GOOD + "replicate: 3\n", 4, "unknown key replicate; did you mean replicates?"),
        (
            GOOD + "trainer:\n  lr: 0.1\n",
            5,
            "unknown key trainer.lr; known here: burn_in, c_clip,",
        ),
        (
            GOOD + "trainer:\n  unroll: 5\n",
            5,
            "unknown key trainer.unroll; it is an axis, write it as axes.unroll",
        ),
        (GOOD + "actors: 5\n", 4, "unknown key actors; it is an axis, write it as axes.actors"),
        (
            "name: a\naxes:\n  actors: [1,\n   two]\n",
            4,
            'axes.actors is "two"; it must be a whole number from 1 to 1,000,000, or auto',
        ),
        ("name: a\naxes:\n  actors: 2.5\n", 3, "axes.actors is 2.5; it must be a whole number"),
        ("name: a\naxes:\n  actors: 0\n", 3, "axes.actors is 0; it must be a whole number from 1"),
        ("name: a\naxes:\n  actors: .inf\n", 3, "axes.actors is inf; it must be"),
        ("name: a\naxes:\n  actors:\n", 3, "axes.actors is empty; it must be"),
        ("name: a\naxes:\n  actors: {a: 1}\n", 3, "axes.actors is a mapping; it must be"),
        ("name: a\naxes:\n  actors: [[1]]\n", 3, "axes.actors is a list; it must be"),
        ("name: a\naxes:\n  actors: []\n", 3, "axes.actors: the list is empty"),
        ("name: a\naxes:\n  actors: [1, 1]\n", 3, "axes.actors: a value stands here twice"),
        (
            "name: a\naxes:\n  unroll: 5\n  unroll_length: 6\n",
            3,
            "unroll_length and unroll are the same axis",
        ),
        ("name: a\naxes:\n  - {}\n  - {learner_batch: 5, batch: 5}\n", 4, "learner_batch and batch are the"),
        ("name: a\naxes:\n  batch: x\n", 3, 'axes.batch is "x"; it must be a whole number'),
        ("name: a\naxes:\n  part: all\n", 3, 'axes.part is "all"; it must be whole, supply or demand'),
        ("name: a\naxes:\n  part: 5\n", 3, "axes.part is 5; it must be whole, supply or demand"),
        (
            "name: a\naxes:\n  network: resnet\n",
            3,
            'axes.network is "resnet"; it must be nature_cnn, shallow_cnn',
        ),
        ("name: a\naxes:\n  sm_share: 1.5\n", 3, "axes.sm_share is 1.5; it must be a number from 0.01 to 1"),
        (
            "name: a\naxes:\n  sm_share: 0.001\n",
            3,
            "axes.sm_share is 0.001; it must be a number from 0.01 to 1",
        ),
        ("name: a\naxes:\n  sm_share: .nan\n", 3, "axes.sm_share is nan; it must be"),
        ("name: a\naxes:\n  sm_share: true\n", 3, "axes.sm_share is true; it must be"),
        (
            "name: a\naxes:\n  pinning: tight\n",
            3,
            'axes.pinning is "tight"; it must be none, compact, scatter',
        ),
        (
            "name: a\naxes:\n  device: tpu\n",
            3,
            'axes.device is "tpu"; it must be cpu, cuda, emulated or auto',
        ),
        (
            "name: a\naxes:\n  environment: 5\n",
            3,
            "axes.environment is 5; it must be the id of an environment",
        ),
        ("name: a\naxes: []\n", 2, "axes is an empty list; it must be a grid, such as"),
        ("name: a\naxes: 5\n", 2, "axes is 5; it must be a grid, such as"),
        ("name: a\naxes: [5]\n", 2, "axes is 5; it must be a grid, such as"),
        ("name: a\naxes:\n", 2, "axes is empty; it must be a grid, such as"),
        ("name: a\n", None, "axes is missing; it must be a grid, such as"),
        ("axes: {actors: 1}\n", None, "name is missing; it must be text of 1 to 200 characters"),
        (
            "name: 2020-01-01\naxes: {}\n",
            1,
            "name is 2020-01-01; it must be text of 1 to 200 characters (in quotes",
        ),
        (f"name: {'a' * 300}\naxes: {{}}\n", 1, "aaa...; it must be text of 1 to 200 characters"),
        ('name: "\\ud800"\naxes: {}\n', 1, "it must be text of 1 to 200 characters"),
        (GOOD + "replicates: true\n", 4, "replicates is true; it must be a whole number from 1 to 1,000"),
        (GOOD + "seed: -1\n", 4, "seed is -1; it must be a whole number, 0 or more"),
        (GOOD + "sentinel: false\n", 4, "sentinel is false; it must be auto or none"),
        (GOOD + "exclude: actors == 1\n", 4, 'exclude is "actors == 1"; it must be a list of expressions'),
        (GOOD + "exclude: [1]\n", 4, "exclude is 1; it must be a list of expressions"),
        (GOOD + "trainer: 5\n", 4, "trainer is 5; it must be a group of settings"),
        (GOOD + "trainer: {discount: 2}\n", 4, "trainer.discount is 2; it must be a number from 0 to 1"),
        (GOOD + "trial:\n  max_s: 3\n", 4, "trial: max_s is 3, too short"),
        (GOOD + "emulated: {inference_s: 0, observation_s: 0, update_s: 0}\n", None, "that no axis asks for"),
        ("name: a\naxes: {device: emulated}\n", None, "whose profile is missing; give emulated: {inference"),
        (EMULATED + "emulated: {inference_s: -1, observation_s: 0, update_s: 0}\n", 3, "a number, 0 or more"),
        (EMULATED + "emulated: {inference_s: 1, observation_s: 0}\n", 3, "emulated.update_s is missing"),
        (
            EMULATED + "emulated: {inference_s: 0, observation_s: 0, update_s: 0, idle_w: 9, busy_w: 5}\n",
            3,
            "busy_w is 5; it must be at least idle_w, 9",
        ),
        (
            EMULATED + "emulated: {inference_s: 0, observation_s: 0, update_s: 0, idle_w: 9}\n",
            3,
            "idle_w and busy_w belong together",
        ),
        ("name: a\naxes:\n  algorithm: ppo\n", 3, 'axes.algorithm is "ppo"; it must be impala or r2d2'),
        ("name: a\naxes:\n  lstm: -1\n", 3, "axes.lstm is -1; it must be a whole number of units, 0 for"),
        ("name: a\naxes:\n  replay_ratio: 0\n", 3, "axes.replay_ratio is 0; it must be a number above 0"),
        (GOOD + "power_model: {idle_w: 50, max_w: 40}\n", 4, "must be above idle_w, 50"),
        (
            GOOD + "power_model: {idle_w: 50}\n",
            4,
            "power_model.max_w is missing; it must be a number above 0",
        ),
        (GOOD + "1: 2\n", 4, "the key 1 is not a word"),
        ("name: a\naxes:\n  on: 1\n", 3, "the key on is not a word"),
        ("name: a\nname: b\naxes: {actors: 1}\n", 2, "the key name stands here twice"),
        ("name: a\naxes: {actors: [1, 2\n", None, "is not YAML"),
        ("name: a\nseed: " + "9" * 5000, None, "is not YAML"),
        ("name: a\naxes: &x {part: *x}\n", None, "an alias (*) holds itself"),
        ("name: a\naxes: {actors: &a [*a]}\n", None, "an alias (*) holds itself"),
        ("name: a\naxes: " + "[" * 3000 + "]" * 3000, None, "nested too deeply"),
        (BOMB, None, "has more than 1,000,000 values"),
        ("- 1\n", None, "is a list; it must be a mapping with name and axes"),
        ("word\n", None, "is text; it must be a mapping with name and axes"),
        ("", None, "is empty; it must hold name and axes"),
        ("# nothing\n", None, "is empty; it must hold name and axes"),
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


@pytest.mark.parametrize("model", [Spec, *GROUPS.values()])
def test_every_key_says_what_its_values_must_be(model):
    described = [field.description or field.metadata for field in model.model_fields.values()]
    assert all(described)
    assert [name for name, field in model.model_fields.items() if not field.description] == []


def test_a_grid_beyond_all_bounds_is_refused_at_once(tmp_path):
    lists = "\n".join(
        f"  {axis}: {[*range(1, 1001)]}"
        for axis in ("actors", "actor_cpus", "device_cpus", "unroll", "batch")
    )
    with pytest.raises(SpecError) as error:
        load_spec(write(tmp_path, f"name: a\naxes:\n{lists}\nexclude: [actors > 1]\n"))
    assert (
        "s.yaml:2: axes: the grids have 1,000,000,000,000,000 combinations of values before `exclude`; "
        "at most 100,000 are looked at" in str(error.value)
    )


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
        ("trainer.lr=1", "--set trainer.lr=1: unknown key trainer.lr"),
        ("replicates", "--set replicates: write it as --set key=value"),
        ("=1", "--set =1: write it as --set key=value"),
        ("trial..max_s=1", "--set trial..max_s=1: write it as --set key=value"),
        ("replicates=[", "--set replicates=[: is not YAML"),
        ("replicates=" + "9" * 5000, ": is not YAML"),
        ("replicates=" + "[" * 3000, "is nested too deeply"),
        ("replicates=", "--set replicates=: replicates is empty; it must be a whole number"),
        ("name.x=1", "--set name.x=1: name is text and has no settings of its own"),
        ("axes.0.actors=1", "--set axes.0.actors=1: unknown key axes.0; known here:"),
        ("axes=5", "--set axes=5: axes is 5; it must be a grid"),
        ("axes.actors=[]", "--set axes.actors=[]: axes.actors: the list is empty"),
        ("axes.actors=[1, two]", '--set axes.actors=[1, two]: axes.actors is "two"; it must be'),
        ("trainer.unroll=x", '--set trainer.unroll=x: axes.unroll is "x"; it must be'),
    ],
)
def test_a_bad_setting_is_refused(tmp_path, setting, message):
    with pytest.raises(SpecError) as error:
        load_spec(write(tmp_path, GOOD), overrides=(setting,))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_error_of_the_plan_is_said_where_its_value_stands(tmp_path):
    path = write(tmp_path, "name: a\naxes:\n  - {}\n  - actors:\n    - 4\n    - 8\nexclude:\n  - actors ==\n")
    for axis, value, place in (("actors", 8, f"{path}:6"), ("exclude", "actors ==", f"{path}:8")):
        assert str(located(path, SpecError("wrong", axis=axis, value=value))) == f"{place}: wrong"
    told = located(path, SpecError("wrong", axis="actors", value=99), overrides=("axes.actors=[99]",))
    assert str(told) == "--set axes.actors=[99]: wrong"
    assert str(located(path, SpecError("wrong", axis="gpus", value=1))) == f"{path}: wrong"


@pytest.mark.parametrize("written", ["6e-4", "6E-4", "0.6e-3", "+6e-4", "6.e-4"])
def test_numbers_may_be_written_as_people_write_them(tmp_path, written):
    spec = load_spec(write(tmp_path, GOOD + f"trainer: {{learning_rate: {written}}}\n"))
    assert spec.trainer.learning_rate == pytest.approx(6e-4)
    spec = load_spec(write(tmp_path, GOOD), overrides=(f"trainer.learning_rate={written}",))
    assert spec.trainer.learning_rate == pytest.approx(6e-4)
