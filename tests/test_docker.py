"""The Dockerfiles and the Compose file, without Docker."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from urllib.parse import urlsplit

import pytest
import yaml
from http_serving import save_text_model, serving
from test_package import PROJECT, ROOT

from keras_seq.serving.deployment import SERVER_RELEASE

DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))
COMPOSE = ROOT / "docker" / "compose.yaml"
# What a build of the wheel needs.
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "keras_seq", "cli")


def instructions(path):
    """Returns the instructions of a Dockerfile as pairs of their name and their arguments."""
    lines = [
        line for line in path.read_text(encoding="utf-8").split("\n") if not line.startswith("#")
    ]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in joined.split("\n") if line]


@pytest.fixture(params=DOCKERFILES, ids=lambda path: path.name)
def dockerfile(request):
    return instructions(request.param)


def test_hadolint_finds_nothing_in_the_dockerfiles():
    folders = [sysconfig.get_path("scripts"), os.environ["PATH"]]
    program = shutil.which("hadolint", path=os.pathsep.join(folders))
    if program is None:
        pytest.skip("hadolint is not installed; it has no wheel for this machine")
    result = subprocess.run(
        [program, "--no-color", *DOCKERFILES], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (0, "")


def test_base_image_has_a_tag_of_a_supported_python(dockerfile):
    ((_, image),) = [pair for pair in dockerfile if pair[0] == "FROM"]
    found = re.fullmatch(r"python:(3\.\d+)-slim-\w+", image)
    classifier = f"Programming Language :: Python :: {found[1]}"
    assert classifier in PROJECT["project"]["classifiers"]


def test_copied_files_are_those_that_a_build_needs(dockerfile):
    copied = {
        name: target
        for instruction, arguments in dockerfile
        if instruction == "COPY"
        for *names, target in [arguments.split()]
        for name in names
    }
    assert set(copied) == set(SOURCES)
    for name, target in copied.items():
        assert target.removesuffix("/") == (
            f"/source/{name}" if (ROOT / name).is_dir() else "/source"
        )


@pytest.mark.process
def test_a_wheel_is_built_from_the_copied_files(tmp_path):
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "."], cwd=tmp_path, check=True)
    assert list(tmp_path.glob("keras_seq-*.whl"))


def test_installed_extras_exist(dockerfile):
    (install,) = [arguments for _, arguments in dockerfile if "pip install" in arguments]
    extras = re.search(r"/source(?:\[([\w,-]+)\])?'?$", install)[1]
    assert set(extras.split(",") if extras else []) <= set(
        PROJECT["project"]["optional-dependencies"]
    )


def test_container_runs_a_command_of_the_program_as_another_user_than_root(dockerfile):
    names = [name for name, _ in dockerfile]
    (user,) = [arguments for name, arguments in dockerfile if name == "USER"]
    assert int(user) > 0
    assert "RUN" not in names[names.index("USER") :]
    program, command, *rest = json.loads(dict(dockerfile)["ENTRYPOINT"])
    assert program in PROJECT["project"]["scripts"]
    help_text = subprocess.run(
        [sys.executable, "-m", "keras_seq", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "100", "TERM": "dumb"},
    ).stdout
    assert all(option in help_text for option in rest if option.startswith("--"))


def test_compose_file_has_the_schema_of_compose():
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    result = subprocess.run([*command, COMPOSE], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_schema_of_compose_rejects_unknown_fields(tmp_path):
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(COMPOSE.read_text(encoding="utf-8").replace("healthcheck:", "health:"))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    assert subprocess.run([*command, wrong], capture_output=True).returncode == 1


@pytest.fixture(scope="module")
def compose_server():
    return yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]["server"]


def test_compose_server_reads_the_mounted_export(compose_server):
    assert compose_server["image"] == f"tensorflow/serving:{SERVER_RELEASE}"
    (volume,) = compose_server["volumes"]
    # The image serves /models/$MODEL_NAME.
    name = compose_server["environment"]["MODEL_NAME"]
    assert volume["target"] == f"/models/{name}" and volume["read_only"]
    assert (
        f"--batching_parameters_file=/models/{name}/serving/batching.txt"
        in (compose_server["command"])
    )
    assert all(port.startswith("127.0.0.1:") for port in compose_server["ports"])


@pytest.mark.process
def test_health_checks_succeed_only_for_a_server_that_has_the_model(tmp_path, compose_server):
    """`keras-seq serve` answers the same status requests as TensorFlow Serving."""
    save_text_model(tmp_path / "ende", 1)
    _, *probe = compose_server["healthcheck"]["test"]
    # Compose writes one $ for two.
    probe = [argument.replace("$$", "$") for argument in probe]
    (health,) = [
        arguments
        for name, arguments in instructions(ROOT / "docker" / "serve.Dockerfile")
        if name == "HEALTHCHECK"
    ]
    image_probe = json.loads(health[health.index("[") :])
    image_probe[0] = sys.executable

    def succeeds(command, port, name="ende"):
        command = [argument.replace("8501", str(port)) for argument in command]
        environment = os.environ | {"MODEL_NAME": name}
        return not subprocess.run(
            command, env=environment, capture_output=True, timeout=60
        ).returncode

    with serving(tmp_path / "ende") as served:
        port = urlsplit(served.url).port
        assert succeeds(probe, port)
        assert not succeeds(probe, port, "other")
        assert succeeds(image_probe, port)
        assert served.stop() == 0
    assert not succeeds(probe, port)
    assert not succeeds(image_probe, port)
