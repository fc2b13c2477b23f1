"""The command line as people run it: processes, files, exit codes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from cgratio import __version__
from cgratio.results import schema, store
from cgratio.sweep.reading import load_spec

ROOT = Path(__file__).parents[2]
TINY = """
name: tiny [CartPole]
axes:
  - {environment: CartPole-v1, network: mlp, device: cpu, actors: [2, 8], actor_cpus: 1, device_cpus: 1}
  - {part: [supply], environment: CartPole-v1, network: mlp, device: cpu, actors: 8, actor_cpus: 1}
replicates: 1
trial: {window_s: 0.2, warmup_min_s: 0.2, warmup_max_s: 0.6, max_s: 2}
power_model: {idle_w: 20, max_w: 60}
"""


def cgratio(*arguments, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, "-m", "cgratio", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env={**os.environ, **environment},
        timeout=200,
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A real sweep of the real trainer, small."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "tiny.yaml").write_text(TINY)
    done = cgratio("sweep", "tiny.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "3 of 3 trials valid" in done.stdout
    return folder / "results" / "tiny"


def test_a_sweep_of_the_real_trainer_is_placed_as_asked(tiny):
    trials = store.load(tiny, strict=True).trials
    pinned = trials[trials["part"] == "whole"]
    assert len(pinned) == 2
    assert (pinned["observed_actor_cpu_list"] != pinned["observed_device_cpu_list"]).all()
    assert pinned["observed_actors"].tolist() == pinned["actors"].tolist()
    assert pinned["observed_actor_threads"].ge(1).all()
    assert (trials["samples_per_joule_boundary"] == "modelled").all()
    assert trials["sampler_cpu_s"].notna().all()
    assert trials["peak_rss_bytes"].gt(50e6).all()
    assert {path.suffix for path in (tiny / "logs").iterdir()} == {".log"}


def test_its_analysis_prints_a_table_and_saves_it(tiny):
    done = cgratio("analyze", tiny)
    assert done.returncode == 0, done.stderr
    assert "modelled" in done.stdout
    assert json.loads((tiny / "analysis.json").read_text())["trials"] == 3


def test_its_analysis_as_json_is_strict_and_plain(tiny):
    done = cgratio("analyze", tiny, "--json", NO_COLOR="1", FORCE_COLOR="1")
    assert done.returncode == 0

    def refuse(name):
        raise AssertionError(name)

    assert json.loads(done.stdout, parse_constant=refuse)["sweep"] == "tiny [CartPole]"
    assert "\x1b" not in done.stdout


def test_its_report_is_a_pdf(tiny, tmp_path):
    done = cgratio("report", tiny, "--out", tmp_path / "r.pdf")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")


def test_it_is_not_run_over(tiny):
    done = cgratio("sweep", tiny.parents[1] / "tiny.yaml", cwd=tiny.parents[1])
    assert done.returncode == 2
    assert "continue it with --resume" in done.stderr
    resumed = cgratio("sweep", tiny.parents[1] / "tiny.yaml", "--resume", cwd=tiny.parents[1])
    assert resumed.returncode == 0
    assert "3 of 3 trials valid" in resumed.stdout


def test_a_dry_run_prints_the_plan_and_writes_nothing(tmp_path):
    done = cgratio("sweep", ROOT / "sweeps" / "quickstart.yaml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    counts = re.search(r"(\d+) points x 2 replicates \+ 2 sentinels = (\d+) trials", done.stdout)
    assert int(counts[2]) == 2 * int(counts[1]) + 2
    assert re.search(
        r"^sentinel: part whole, actors 8, .*; measured once more in each block", done.stdout, re.MULTILINE
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\naxes: {environment: Pong-v55}\n", "s.yaml:2: environment 'Pong-v55' is not one of"),
        (
            "name: a\naxes:\n  - {}\n  - {actor_cpus: 4096}\n",
            "s.yaml:4: part=whole, actors=16: 4096 actor CPUs",
        ),
        (
            "name: a\naxes: {environment: CartPole-v1}\n",
            "s.yaml: nature_cnn cannot read CartPole-v1: it reads",
        ),
        ("name: a\naxes: {actorz: 1}\n", "s.yaml:2: unknown key axes.actorz; did you mean actors?"),
    ],
)
def test_bad_input_is_one_line_and_exit_2_before_anything_runs(tmp_path, text, message):
    (tmp_path / "s.yaml").write_text(text)
    done = cgratio("sweep", "s.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "results").exists()


NAMES = (b"\xff", "\x1b[2Jx", "a" * 5000, "", ".", "/dev/null", "/proc/self/mem", "x\ny")
"""Paths that are none that a command could use."""

BAD_VALUES = [
    *(["analyze", name] for name in NAMES),
    *(["report", name] for name in NAMES),
    *(
        ["report", "FOLDER", "--out", name]
        for name in (*NAMES, "/nonexistent/x.pdf", "/dev/null/x.pdf", "x.txt")
    ),
    *(["doctor", "--sysroot", name] for name in NAMES),
    *(["sweep", name] for name in NAMES),
    *(
        ["sweep", "SPEC", "--set", value]
        for value in ("x", "=", "a=[", "name", "axes=1", "trial.max_s=nan", "\x1b=1")
    ),
    *(
        ["train", name]
        for name in ("Nope-v0", "", "\x1b[2J", "Ant-v4", "FrozenLake-v1", "MiniGrid-Empty-5x5-v0")
    ),
    *(["train", "--network", value] for value in ("resnet", "", "nature_cnn", "\x1b")),
    *(["train", "--device", value] for value in ("tpu", "", "cuda:0", "\x1b")),
    *(
        ["train", f"--{option}", value]
        for option in (
            "samples",
            "actors",
            "actor-threads",
            "device-threads",
            "unroll-length",
            "learner-batch",
        )
        for value in ("0", "-3", "x", "", "1.5", "nan", "9" * 30 if option != "samples" else "")
    ),
    *(["train", "--inference-batch", value] for value in ("0", "-1", "33", "x")),
    *(
        ["train", "--set", f"trainer.{name}={value}"]
        for name in ("learning_rate", "discount", "entropy_cost")
        for value in ("-1", ".nan", ".inf", "x", "", "[1]")
    ),
    *(
        ["train", "--set", value]
        for value in ("x", "=", "trainer", "trainer.x=1", "trainer.actors=4", "discount=0.9", "trial.max_s=1")
    ),
    ["train", "--set", "trainer.burn_in=3"],
    ["train", "--algorithm", "r2d2", "--set", "trainer.entropy_cost=0.1"],
    *(["train", "--precision", value] for value in ("", "fp16", "BF16")),
    *(["train", "--algorithm", value] for value in ("ppo", "", "IMPALA")),
    *(["train", "--inference", value] for value in ("remote", "")),
    *(["train", "--lstm", value] for value in ("-1", "x", "1e9")),
    *(["train", "--actor-groups", value] for value in ("0", "-1", "33", "x")),
    *(["train", "--replay-ratio", value] for value in ("0", "-1", "nan", "x")),
    *(["train", "--network", value] for value in ("no_module:factory", ":", "math:pi")),
    *(["train", value] for value in ("gymnasium:", "gymnasium:None-v0", "no_module:factory", "math:pi")),
    *(["train", "--until-return", value] for value in ("nan", "inf", "x")),
    *(["train", "--seed", value] for value in ("-1", "x", str(2**31), "9" * 30)),
    ["train", "Pong-v5", "--learner-batch", "1000000", "--unroll-length", "1000000"],
    *([command, "--no-such-option"] for command in ("analyze", "report", "doctor", "sweep", "train")),
    *([command] for command in ("analyze", "report", "sweep", "no-such-command", "\x1b[2J")),
]


def test_a_bad_value_of_any_option_is_one_line_and_exit_2(tmp_path):
    (tmp_path / "s.yaml").write_text(TINY)
    row = {"trial_id": "t", "part": "whole", "status": "complete", "verdict": ["valid"], "samples_per_s": 5.0}
    store.write_rows(tmp_path / "f" / "trials" / "t.parquet", schema.TRIALS, [row])
    places = {"SPEC": str(tmp_path / "s.yaml"), "FOLDER": str(tmp_path / "f")}
    cases = [
        [places.get(word, word) if isinstance(word, str) else os.fsdecode(word) for word in case]
        for case in BAD_VALUES
    ]
    # One process for all of them: each is the whole program, but torch is loaded once.
    script = (
        "import json, sys\n"
        "from cgratio.cli import main\n"
        "for case in json.load(sys.stdin):\n"
        "    sys.argv = ['cgratio', *case]\n"
        "    try:\n        main()\n        code = None\n"
        "    except SystemExit as ended:\n        code = ended.code\n"
        "    except BaseException as error:\n        code = repr(error)\n"
        "    sys.stderr.write(f'\\0{code}\\0')\n    sys.stderr.flush()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        timeout=200,
    )
    *said, _ = done.stderr.split("\0")
    answers = list(zip(said[1::2], said[::2], strict=True))
    assert len(answers) == len(cases)
    for case, (code, lines) in zip(cases, answers, strict=True):
        assert code == "2", case
        assert re.fullmatch(r"error: [^\n\x1b]+\n", lines), case
    assert done.stdout == ""


def test_the_documented_exit_codes_are_these():
    from cgratio.cli import output

    table = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert documented == {0, 1, 2, 3, 4, 130, 141, 143}
    said = (output.BAD_INPUT, output.INCONCLUSIVE, output.INVALID, output.NO_READER)
    assert said == (2, 3, 4, 141)


def test_train_prints_returns_and_stops_at_what_was_asked():
    done = cgratio("train", "CartPole-v1", "--samples", "1000", "--actors", "7", "--learner-batch", "7")
    assert done.returncode == 0, done.stderr
    assert "learned 1120 samples in 8 updates" in done.stdout
    assert "return over the last" in done.stdout


def test_train_says_when_a_return_was_not_reached():
    done = cgratio("train", "CartPole-v1", "--samples", "500", "--until-return", "475")
    assert done.returncode == 3
    assert "475 was not reached" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["no-such-command"], 2),
        (["analyze", "/nonexistent"], 2),
        (["report", "/nonexistent"], 2),
        (["sweep", "/nonexistent.yaml"], 2),
        (["train", "Nope-v0"], 2),
        (["train", "--device", "gpu"], 2),
        (["train", "--set", "trainer.learning_rate=.nan"], 2),
        (["doctor", "--sysroot", "/nonexistent"], 2),
    ],
)
def test_exit_codes(arguments, code):
    assert cgratio(*arguments).returncode == code


def test_a_training_run_is_recorded_once(tmp_path):
    command = ("train", "CartPole-v1", "--samples", "3000", "--actors", "4", "--out", str(tmp_path / "run"))
    done = cgratio(*command)
    assert done.returncode == 0, done.stderr
    curve = pq.read_table(tmp_path / "run" / "curve.parquet").to_pylist()
    assert curve[-1]["learned"] >= 3000
    assert curve[-1]["return_mean"] > 0
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (run["config"]["environment"], run["config"]["actors"]) == ("CartPole-v1", 4)
    assert run["software"]["torch"]
    again = cgratio(*command)
    assert again.returncode == 2
    assert "holds a training run already" in again.stderr


def test_the_commands_and_their_options_are_these():
    from cgratio.cli import app

    frozen = {
        "sweep": {"spec", "out", "dry_run", "resume", "allow_drift", "settings"},
        "analyze": {"folder", "as_json", "strict"},
        "report": {"folder", "out"},
        "doctor": {"sysroot", "as_json"},
        "train": {
            "environment",
            "algorithm",
            "network",
            "lstm",
            "samples",
            "until_return",
            "actors",
            "actor_threads",
            "actor_groups",
            "inference",
            "device",
            "device_threads",
            "unroll_length",
            "learner_batch",
            "inference_batch",
            "replay_ratio",
            "precision",
            "seed",
            "settings",
            "out",
        },
    }
    import inspect

    found = {
        command.callback.__name__: set(inspect.signature(command.callback).parameters)
        for command in app.registered_commands
    }
    assert found == frozen
    assert cgratio("--version").stdout.strip() == f"cgratio {__version__}"


def test_a_name_that_the_terminal_cannot_show_ends_nothing(tmp_path):
    (tmp_path / "s.yaml").write_text(TINY.replace("tiny [CartPole]", "訓練 $5"), encoding="utf-8")
    done = cgratio("sweep", "s.yaml", "--dry-run", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert r"\u8a13\u7df4 $5" in done.stdout


def test_control_bytes_of_names_are_shown_and_not_obeyed_by_a_sweep(tmp_path):
    (tmp_path / "s.yaml").write_text(TINY.replace("tiny [CartPole]", r'"tiny \e[31m\a"'))
    done = cgratio("sweep", "s.yaml", "--dry-run", "--out", "\x1b[2Jout", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not {"\x1b", "\a"} & set(done.stdout)
    assert r"tiny \x1b[31m\x07: 3 points" in done.stdout
    assert r"into \x1b[2Jout" in done.stdout


@pytest.mark.parametrize("command", ["--help", "analyze --help", "report --help"])
def test_help_loads_neither_torch_nor_envpool_nor_pandas(command):
    code = (
        f"import sys; sys.argv = ['cgratio', *{command.split()!r}]\n"
        "from cgratio.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'envpool', 'pandas', 'scipy', 'matplotlib', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "document", [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"], ids=lambda p: p.name
)
def test_specifications_in_the_documents_are_valid(document, tmp_path):
    for number, block in enumerate(
        re.findall(r"```yaml\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    ):
        if isinstance(yaml.safe_load(block), dict) and "name" in yaml.safe_load(block):
            path = tmp_path / f"{number}.yaml"
            path.write_text(block, encoding="utf-8")
            load_spec(path)


@pytest.mark.parametrize("spec", sorted((ROOT / "sweeps").glob("*.yaml")), ids=lambda p: p.name)
def test_shipped_specifications_are_valid(spec):
    load_spec(spec)
