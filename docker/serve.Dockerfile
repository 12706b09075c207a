# Serves an export with `keras-seq serve`. In the root of the repository:
#
#   docker build -f docker/serve.Dockerfile -t keras-seq-serve .
#   docker run --rm -p 127.0.0.1:8501:8501 -v "$PWD"/served/dates:/models/dates:ro keras-seq-serve \
#     /models/dates --allowed-host localhost
FROM python:3.13-slim-bookworm

RUN useradd --uid 1000 keras-seq
COPY pyproject.toml README.md LICENSE NOTICE /source/
COPY cli /source/cli
COPY keras_seq /source/keras_seq
RUN python -m pip install --no-cache-dir '/source[serve]'

USER 1000
# Libraries write their settings to the home directory.
ENV HOME=/tmp
EXPOSE 8501
HEALTHCHECK --start-period=60s --interval=10s CMD ["python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://localhost:8501/ready', timeout=5)"]
# A container is reached through its own address, not through 127.0.0.1.
ENTRYPOINT ["keras-seq", "serve", "--host", "0.0.0.0"]
CMD ["--help"]
