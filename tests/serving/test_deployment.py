"""The manifests of an export: schemas of Kubernetes and KServe, and the facts of the export."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import unquote

import jsonschema
import kubernetes_validate
import pytest
import yaml
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
    wrappers_pb2,
)

from keras_seq.serving.deployment import (
    SERVER_RELEASE,
    batching_parameters,
    resource_name,
    write_deployment,
)
from keras_seq.text import InputError

# Names with special characters of YAML, URLs and Kubernetes.
NAMES = ["ende", "a folder's name", '"2" #\\ & %41 *', "Émile\u2028\x85\x7f犬🐕", "8" * 90, "-_-"]
# The oldest release with a schema, and the newest.
RELEASES = [kubernetes_validate.utils.all_versions()[index] for index in (0, -1)]
# RFC 1035 labels, which Kubernetes requires for the names of Services.
LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")

# The fields of an InferenceService that are used here, with the names and types of
# pkg/apis/serving/v1beta1 of KServe (predictor.go, predictor_model.go) and of the guide
# https://kserve.github.io/website/docs/model-serving/predictive-inference/frameworks/tensorflow.
# The fields of a container and of a volume are those of Kubernetes.
INFERENCE_SERVICE = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "serving.kserve.io/v1beta1"},
        "kind": {"const": "InferenceService"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": {
            "type": "object",
            "required": ["predictor"],
            "additionalProperties": False,
            "properties": {
                "predictor": {
                    "type": "object",
                    "required": ["model"],
                    "additionalProperties": False,
                    "properties": {
                        "volumes": {"type": "array"},
                        "model": {
                            "type": "object",
                            "required": ["modelFormat", "storageUri"],
                            "additionalProperties": False,
                            "properties": {
                                "modelFormat": {
                                    "type": "object",
                                    "required": ["name"],
                                    "additionalProperties": False,
                                    "properties": {
                                        "name": {"const": "tensorflow"},
                                        "version": {"enum": ["1", "2"]},
                                    },
                                },
                                "runtime": {"const": "kserve-tensorflow-serving"},
                                "runtimeVersion": {"type": "string"},
                                "protocolVersion": {"enum": ["v1", "v2", "grpc-v1", "grpc-v2"]},
                                "storageUri": {"pattern": "^(pvc|gs|s3|https?)://."},
                                "args": {"type": "array", "items": {"type": "string"}},
                                "resources": {"type": "object"},
                                "volumeMounts": {"type": "array"},
                            },
                        },
                    },
                }
            },
        },
    },
}


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory):
    """A small SavedModel with two signatures."""
    import tensorflow as tf

    class Echo(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
        def echo(self, text):
            return {"translation": text}

    path = tmp_path_factory.mktemp("model") / "1"
    module = Echo()
    signatures = {"serving_default": module.echo, "n_best": module.echo}
    tf.saved_model.save(module, str(path), signatures=signatures)
    return path


@pytest.fixture(params=NAMES)
def base(request, tmp_path, saved_model):
    base = tmp_path / request.param
    base.mkdir()
    write_deployment(base, saved_model, batching_parameters("texts", 32))
    return base


def documents(base, name):
    """Returns the documents of a manifest by kind."""
    text = (base / "serving" / name).read_text(encoding="utf-8")
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def options(arguments):
    """Returns the options of a command line by name."""
    pairs = (argument.removeprefix("--").partition("=") for argument in arguments)
    return {name: value for name, _, value in pairs}


def server(base):
    """Returns the container of the Deployment."""
    deployment = documents(base, "kubernetes.yaml")["Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return container


@pytest.mark.parametrize("release", RELEASES)
def test_kubernetes_manifest_has_the_schemas_of_kubernetes(base, release):
    found = documents(base, "kubernetes.yaml")
    assert list(found) == ["PersistentVolumeClaim", "ConfigMap", "Deployment", "Service"]
    for document in found.values():
        kubernetes_validate.validate(document, release, strict=True)
        assert LABEL.fullmatch(document["metadata"]["name"])


def test_schemas_reject_unknown_fields_and_wrong_types(base):
    deployment = documents(base, "kubernetes.yaml")["Deployment"]
    deployment["spec"]["template"]["spec"]["container"] = []
    with pytest.raises(kubernetes_validate.ValidationError, match="container"):
        kubernetes_validate.validate(deployment, RELEASES[-1], strict=True)
    service = documents(base, "kserve.yaml")["InferenceService"]
    service["spec"]["predictor"]["model"]["runtimeVersion"] = 2.2
    with pytest.raises(jsonschema.ValidationError, match="is not of type 'string'"):
        jsonschema.validate(service, INFERENCE_SERVICE)


def test_kserve_manifest_has_the_fields_of_an_inference_service(base):
    found = documents(base, "kserve.yaml")
    assert list(found) == ["ConfigMap", "InferenceService"]
    kubernetes_validate.validate(found["ConfigMap"], RELEASES[-1], strict=True)
    service = found["InferenceService"]
    jsonschema.validate(service, INFERENCE_SERVICE)
    name = service["metadata"]["name"]
    predictor = service["spec"]["predictor"]
    assert predictor["model"]["runtimeVersion"] == SERVER_RELEASE
    claim = documents(base, "kubernetes.yaml")["PersistentVolumeClaim"]["metadata"]["name"]
    assert predictor["model"]["storageUri"] == f"pvc://{claim}"
    # KServe runs the rest of the predictor as a pod with this container.
    container = {key: predictor["model"][key] for key in ("args", "resources", "volumeMounts")}
    pod = {"containers": [{"name": "server", **container}], "volumes": predictor["volumes"]}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod}
    kubernetes_validate.validate(document, RELEASES[-1], strict=True)


def test_server_gets_name_paths_and_ports_that_the_manifest_declares(base):
    found, container = documents(base, "kubernetes.yaml"), server(base)
    assert container["image"] == f"tensorflow/serving:{SERVER_RELEASE}"
    arguments = options(container["args"])
    assert arguments["model_name"] == base.name
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert arguments["model_base_path"] == mounts["models"]
    assert os.path.dirname(arguments["batching_parameters_file"]) == mounts["config"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": int(arguments["port"]), "rest": int(arguments["rest_api_port"])}
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        request = container[kind]["httpGet"]
        assert request["port"] == "rest"
        assert unquote(request["path"]) == f"/v1/models/{base.name}"
        assert request["path"].isascii() and not set(request["path"]) & set(' "#?')
    service, template = found["Service"], found["Deployment"]["spec"]["template"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports)
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    claim = volumes["models"]["persistentVolumeClaim"]["claimName"]
    assert claim == found["PersistentVolumeClaim"]["metadata"]["name"]
    assert volumes["config"]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]


def test_manifests_list_the_signatures_of_the_version(base):
    for name, kind in (("kubernetes.yaml", "Deployment"), ("kserve.yaml", "InferenceService")):
        annotations = documents(base, name)[kind]["metadata"]["annotations"]
        assert annotations["keras-seq/signatures"] == "n_best, serving_default"


def test_pod_meets_the_restricted_pod_security_standard(base):
    """https://kubernetes.io/docs/concepts/security/pod-security-standards, "Restricted"."""
    pod = documents(base, "kubernetes.yaml")["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    context = server(base)["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert {kind for volume in pod["volumes"] for kind in set(volume) - {"name"}} <= {
        "configMap",
        "persistentVolumeClaim",
    }


def test_batching_parameters_parse_as_those_of_tensorflow_serving(base):
    file = (base / "serving" / "batching.txt").read_text(encoding="utf-8")
    for name in ("kubernetes.yaml", "kserve.yaml"):
        manifest = documents(base, name)["ConfigMap"]["data"]["batching.txt"]
        cores = server(base)["resources"]["requests"]["cpu"]
        for text, threads in ((file, 0), (manifest, int(cores))):
            parameters = text_format.Parse(text, batching_message())
            assert parameters.max_batch_size.value == 32
            assert parameters.batch_timeout_micros.value == 5000
            assert parameters.max_enqueued_batches.value == 100
            assert parameters.num_batch_threads.value == threads
            assert not parameters.pad_variable_length_inputs
    with pytest.raises(text_format.ParseError):
        text_format.Parse(file.replace("max_batch_size", "batch_size"), batching_message())


def test_commands_of_the_kubernetes_manifest_publish_the_version(base, tmp_path, saved_model):
    shutil.copytree(saved_model, base / "1")
    text = (base / "serving" / "kubernetes.yaml").read_text(encoding="utf-8")
    header = text[: text.index("apiVersion")]
    commands = re.findall(r"^#   (.*)$", header, flags=re.MULTILINE)
    # `kubectl exec` runs its command here, in a folder that stands for the volume.
    name = documents(base, "kubernetes.yaml")["Deployment"]["metadata"]["name"]
    volume = tmp_path / "volumes" / "models" / name
    volume.mkdir(parents=True)
    program = tmp_path / "kubectl"
    program.write_text(
        '#!/bin/bash\necho "$@" >> "$LOG"\n'
        'if [ "$1" = exec ]; then shift 4; "${@/\\/models/$VOLUMES/models}"; fi\n'
    )
    program.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "LOG": str(tmp_path / "log"),
        "VOLUMES": str(tmp_path / "volumes"),
    }
    script = "\n".join(commands)
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=base, env=environment, check=True
    )
    copied = {path.relative_to(volume / "1") for path in (volume / "1").rglob("*")}
    assert copied == {path.relative_to(saved_model) for path in saved_model.rglob("*")}
    calls = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert calls[0] == "apply -f serving/kubernetes.yaml"
    assert f"exec -i deploy/{name} -- sh -c" in calls[1]
    assert calls[-1] == f"rollout status deploy/{name}"


@pytest.mark.parametrize("base", ["ende"], indirect=True)
def test_memory_grows_by_two_versions_or_more_with_the_size_of_the_export(base, saved_model):
    def memory():
        resources = server(base)["resources"]
        return [
            int(resources[kind]["memory"].removesuffix("Mi")) for kind in ("requests", "limits")
        ]

    small = memory()
    large = base / "1" / "variables"
    large.mkdir(parents=True)
    (base / "1" / "saved_model.pb").write_bytes((saved_model / "saved_model.pb").read_bytes())
    with open(large / "data", "wb") as file:
        # A file of zeros, which takes no space on the disk.
        file.truncate(500 * 2**20)
    write_deployment(base, base / "1", batching_parameters("texts", 32))
    growth = [after - before for before, after in zip(small, memory(), strict=True)]
    assert 2 * 500 <= growth[0] < growth[1]


def test_names_of_resources_are_labels_of_kubernetes():
    names = [*NAMES, "", "a" * 39 + "-b", "8", "ENDE.v2", "İ"]
    assert all(LABEL.fullmatch(resource_name(name)) for name in names)
    assert resource_name("ENDE_v2") == "ende-v2"
    assert len({resource_name(name) for name in ("", "8")}) == 2


@pytest.mark.parametrize("base", [Path("/"), Path("a:b")], ids=["root", "colon"])
def test_invalid_model_name_raises_value_error(base, saved_model):
    with pytest.raises(ValueError, match="a model name must be"):
        write_deployment(base, saved_model, "")


def test_unwritable_directory_raises_input_error(tmp_path, saved_model):
    (tmp_path / "serving").touch()
    with pytest.raises(InputError, match="serving: cannot be written: "):
        write_deployment(tmp_path, saved_model, "")


def batching_message():
    """Builds TensorFlow Serving's `BatchingParameters` message, which no package provides."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="batching.proto",
        package="tensorflow.serving",
        syntax="proto3",
        dependency=["google/protobuf/wrappers.proto"],
    )
    message = file.message_type.add(name="BatchingParameters")
    values = {
        "max_batch_size": 1,
        "batch_timeout_micros": 2,
        "max_enqueued_batches": 3,
        "num_batch_threads": 4,
    }
    for name, number in values.items():
        message.field.add(
            name=name,
            number=number,
            label=field.LABEL_OPTIONAL,
            type=field.TYPE_MESSAGE,
            type_name=".google.protobuf.Int64Value",
        )
    message.field.add(
        name="allowed_batch_sizes", number=6, label=field.LABEL_REPEATED, type=field.TYPE_INT64
    )
    message.field.add(
        name="pad_variable_length_inputs",
        number=7,
        label=field.LABEL_OPTIONAL,
        type=field.TYPE_BOOL,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    found = pool.FindMessageTypeByName("tensorflow.serving.BatchingParameters")
    return message_factory.GetMessageClass(found)()
