# The images of edgeshare, from a fresh clone, with nothing made before:
#
#   docker build --tag edgeshare .                       # every part of it; the arguments say which runs
#   docker build --tag edgeshare-node --target node .    # what runs on nodes: without the assigner and what it needs
#
# Where wheels lie ready, made by the base's version of Python on its processor, nothing is compiled or downloaded:
#
#   docker build --build-context wheels=FOLDER --tag edgeshare .
#
# What pip has to know to reach PyPI, a mirror for example: --secret id=pip.conf,src=FILE
ARG BUILDER=python:3.11-bookworm
ARG BASE=python:3.11-slim-bookworm

FROM ${BUILDER} AS builder
WORKDIR /source
# First what all is made with, which changes more rarely than the sources. `ziglang` builds the hook for the oldest C
# library that a workload may have, glibc 2.17.
COPY requirements.txt requirements-dev.txt ./
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    awk '/^[^ ]/ { of_zig = /^ziglang==/ } of_zig' requirements-dev.txt >/zig.txt \
 && python3 -m venv /build \
 && /build/bin/python -m pip wheel --quiet --require-hashes --requirement requirements.txt --wheel-dir /wheels \
 && /build/bin/python -m pip install --quiet --require-hashes --requirement requirements.txt --requirement /zig.txt
COPY . .
RUN /build/bin/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir /wheels .

FROM scratch AS wheels
COPY --from=builder /wheels /

FROM ${BASE} AS node
ENV PATH=/opt/edgeshare/bin:/usr/local/bin:/usr/bin:/bin
# pip runs from its own wheel: the base may have none, and the image needs none.
RUN --mount=type=bind,from=wheels,source=/,target=/wheels \
    python3 -m venv --without-pip /opt/edgeshare \
 && PYTHONPATH="$(echo /wheels/pip-*.whl)" python -m pip install \
      --quiet --no-cache-dir --no-index --find-links /wheels edgeshare
ENTRYPOINT ["edgeshare"]

FROM node AS cluster
RUN --mount=type=bind,from=wheels,source=/,target=/wheels \
    PYTHONPATH="$(echo /wheels/pip-*.whl)" python -m pip install \
      --quiet --no-cache-dir --no-index --find-links /wheels 'edgeshare[cluster]'
