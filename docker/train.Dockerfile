# Trains on a processor. In the root of the repository:
#
#   docker build -f docker/train.Dockerfile -t keras-seq-train .
#   docker run --rm -v "$PWD":/work --user "$(id -u)" keras-seq-train runs/dates --pairs pairs.tsv
FROM python:3.13-slim-bookworm

RUN useradd --uid 1000 keras-seq
COPY pyproject.toml README.md LICENSE NOTICE /source/
COPY cli /source/cli
COPY keras_seq /source/keras_seq
RUN python -m pip install --no-cache-dir /source

USER 1000
# Keras writes its settings to the home directory.
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["keras-seq", "train"]
CMD ["--help"]
