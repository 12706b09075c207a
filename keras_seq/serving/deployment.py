"""Files that deploy an export with TensorFlow Serving, written next to the versions."""

from __future__ import annotations

import json
import math
import re
import textwrap
from pathlib import Path
from urllib.parse import quote

from keras_seq.serving.graph_file.signatures import read_signatures
from keras_seq.storage import make_directory, reason, write_file
from keras_seq.text import InputError

# The release of TensorFlow Serving in the manifests. `tests/serving/test_server_release.py` loads
# exports with the TensorFlow and the tensorflow-text of this release.
SERVER_RELEASE = "2.20.0"
DEPLOYMENT_FILES = ("batching.txt", "kubernetes.yaml", "kserve.yaml")
# Processor cores of one server.
_CORES = 2
# Kubernetes allows 63 characters; KServe appends a suffix of its own.
_LONGEST_NAME = 40

_BATCHING = """\
# BatchingParameters of TensorFlow Serving, for --enable_batching --batching_parameters_file=...
# Requests that arrive at about the same time run as one batch.

# {items} per batch; a request with more of them is rejected.
max_batch_size {{ value: {max_batch} }}
# How long the first request of a batch waits for others.
batch_timeout_micros {{ value: 5000 }}
# Batches that may wait; requests beyond them are rejected at once.
max_enqueued_batches {{ value: 100 }}
# num_batch_threads: the number of processor cores by default.

# No allowed_batch_sizes: the graph accepts any number of rows, and rows that only fill a batch
# would be computed for nothing.
{padding}
"""

TEXT_PADDING = """\
# No pad_variable_length_inputs: a text is one string, whatever its length. Rows of the signature
# `ids` must be padded by the client, because the server pads with a row's first id instead of 0."""

_CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
data:
  batching.txt: |
{batching}
    # The server would count the cores of the node, not those of the container.
    num_batch_threads {{ value: {cores} }}
"""

_RESOURCES = """\
# The version has {megabytes:.1f} MB. While the server switches versions, it holds two.
resources:
  requests:
    cpu: "{cores}"
    memory: {request}Mi
  limits:
    cpu: "{cores}"
    memory: {limit}Mi
"""

_KUBERNETES = """\
# Runs {title} on Kubernetes with TensorFlow Serving. In the directory above `serving`:
#
#   kubectl apply -f serving/kubernetes.yaml
#   tar -cf - {version} | kubectl exec -i deploy/{name} -- sh -c \\
#     'cd /models/{name} && mkdir -p .new && tar -xf - -C .new && mv .new/{version} .'
#   kubectl rollout status deploy/{name}
#
# The second command copies the version to the volume. The server waits for it, and for each later
# version that you copy in the same way.
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {name}
spec:
  accessModes:
    - ReadWriteOnce
  resources:
    requests:
      storage: {storage}Gi
---
{config_map}---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels:
    app.kubernetes.io/name: {name}
  annotations:
    keras-seq/signatures: {signatures}
spec:
  # For more replicas, use a volume that several nodes can mount (ReadWriteMany).
  replicas: 1
  # Two servers cannot share the volume on different nodes.
  strategy:
    type: Recreate
  selector:
    matchLabels:
      app.kubernetes.io/name: {name}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {name}
    spec:
      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 1000
        runAsGroup: 1000
        fsGroup: 1000
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: server
          image: tensorflow/serving:{release}
          command:
            - /usr/bin/tensorflow_model_server
          args:
            - --port=8500
            - --rest_api_port=8501
            - {model_name}
            - --model_base_path=/models/{name}
            - --enable_batching
            - --batching_parameters_file=/config/batching.txt
            # A search step is hundreds of small operations; threads that share one mostly wait.
            - --tensorflow_intra_op_parallelism=1
            - --tensorflow_inter_op_parallelism={cores}
          ports:
            - name: grpc
              containerPort: 8500
            - name: rest
              containerPort: 8501
          # The server listens as soon as a version is loaded. Until then it may wait 10 minutes
          # for the copy of the first version; after that it is restarted and waits again.
          startupProbe:
            httpGet:
              path: {status_path}
              port: rest
            periodSeconds: 5
            failureThreshold: 120
          readinessProbe:
            httpGet:
              path: {status_path}
              port: rest
            periodSeconds: 5
            timeoutSeconds: 5
          # Lenient, because requests for the status wait behind other requests.
          livenessProbe:
            httpGet:
              path: {status_path}
              port: rest
            periodSeconds: 10
            timeoutSeconds: 10
            failureThreshold: 6
{resources}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop:
                - ALL
          volumeMounts:
            - name: models
              mountPath: /models/{name}
            - name: config
              mountPath: /config
              readOnly: true
      volumes:
        - name: models
          persistentVolumeClaim:
            claimName: {name}
        - name: config
          configMap:
            name: {name}
---
apiVersion: v1
kind: Service
metadata:
  name: {name}
  labels:
    app.kubernetes.io/name: {name}
spec:
  selector:
    app.kubernetes.io/name: {name}
  ports:
    - name: grpc
      port: 8500
      targetPort: grpc
    - name: rest
      port: 8501
      targetPort: rest
"""

_KSERVE = """\
# Runs {title} on KServe with TensorFlow Serving; the model is called {name} there.
# `storageUri` is a volume or a bucket with the versions: the claim that serving/kubernetes.yaml
# fills, or for example gs://BUCKET/{name} or s3://BUCKET/{name}. Then:
#
#   kubectl apply -f serving/kserve.yaml
{config_map}---
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: {name}
  annotations:
    keras-seq/signatures: {signatures}
spec:
  predictor:
    model:
      modelFormat:
        name: tensorflow
        version: "2"
      runtime: kserve-tensorflow-serving
      # Replaces the release that KServe's runtime names, which may be older.
      runtimeVersion: {release}
      protocolVersion: v1
      storageUri: pvc://{name}
      # KServe puts these after its own, which give the name, the ports and the directory.
      args:
        - --enable_batching
        - --batching_parameters_file=/config/batching.txt
        - --tensorflow_intra_op_parallelism=1
        - --tensorflow_inter_op_parallelism={cores}
{resources}
      volumeMounts:
        - name: config
          mountPath: /config
          readOnly: true
    volumes:
      - name: config
        configMap:
          name: {name}
"""


def batching_parameters(items: str, max_batch: int, padding: str = TEXT_PADDING) -> str:
    """Returns `BatchingParameters` of TensorFlow Serving in protobuf's text format.

    `items` is the noun for the rows of a request, such as "texts". `max_batch` is the maximum
    number of rows per batch.
    """
    return _BATCHING.format(items=items.capitalize(), max_batch=max_batch, padding=padding)


def served_name(base: Path) -> str:
    """Returns the name of the model, which is that of the directory of its versions.

    Raises ValueError if a model server does not accept the name.
    """
    name = base.absolute().name
    if not name or set(name) & set("/:\n"):
        raise ValueError(f'a model name must be without "/" and ":", received {name!r}')
    return name


def write_deployment(base: Path, version: Path, batching: str) -> Path:
    """Writes the `DEPLOYMENT_FILES` to the directory `serving` in `base`.

    The manifests contain the name of the model, the signatures and the size of `version`, and the
    batching parameters. Returns the directory. Raises InputError if it cannot be written.
    """
    model_name = served_name(base)
    name = resource_name(model_name)
    size = sum(file.stat().st_size for file in version.rglob("*") if file.is_file())
    mebibytes = math.ceil(size / 2**20)
    signatures = (name for name in read_signatures(version) if not name.startswith("__"))
    # Two versions with batches of 32 long lines took 640 MiB for exports of 6 MB each, and
    # 1,106 MiB for exports of 179 MB.
    resources = _RESOURCES.format(
        megabytes=size / 1e6,
        cores=_CORES,
        request=512 + 2 * mebibytes,
        limit=1024 + 3 * mebibytes,
    ).rstrip("\n")
    facts = {
        "title": _quoted(model_name),
        "name": name,
        "version": version.name,
        "signatures": _quoted(", ".join(sorted(signatures))),
        "release": SERVER_RELEASE,
        "cores": _CORES,
        "model_name": _quoted(f"--model_name={model_name}"),
        "status_path": _quoted(f"/v1/models/{quote(model_name)}"),
        # Space for ten versions.
        "storage": max(1, math.ceil(10 * mebibytes / 1024)),
        "config_map": _CONFIG_MAP.format(
            name=name, cores=_CORES, batching=textwrap.indent(batching.rstrip("\n"), 4 * " ")
        ),
    }
    kubernetes = _KUBERNETES.format(resources=textwrap.indent(resources, 10 * " "), **facts)
    kserve = _KSERVE.format(resources=textwrap.indent(resources, 6 * " "), **facts)
    contents = (batching, kubernetes, kserve)
    return write_serving_files(base, dict(zip(DEPLOYMENT_FILES, contents, strict=True)))


def write_serving_files(base: Path, files: dict[str, str]) -> Path:
    """Writes files to the directory `serving` in `base`, which model servers ignore."""
    directory = base / "serving"
    try:
        make_directory(directory)
        for name, content in files.items():
            write_file(directory / name, content.encode())
    except OSError as error:
        raise InputError(f"{directory}: cannot be written: {reason(error)}") from None
    return directory


def resource_name(model_name: str) -> str:
    """Returns a name for Kubernetes: lower-case letters of ASCII, digits and hyphens."""
    name = re.sub("[^a-z0-9]+", "-", model_name.lower()).strip("-")
    # The name of a Service begins with a letter.
    name = name if name[:1].isalpha() else f"model-{name}"
    return name[:_LONGEST_NAME].strip("-")


def _quoted(text: str) -> str:
    """Returns a double-quoted string of YAML, which is one of JSON with other escapes."""
    literal = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in literal)
