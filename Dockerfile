# The images of edgeshare, from a fresh clone, with nothing made before:
#
#   docker build --tag edgeshare .                       # every part of it; the arguments say which runs
#   docker build --tag edgeshare-node --target node .    # what runs on nodes: without the assigner and what it needs
#   docker build --platform linux/arm64 …                # for another processor than this machine's: amd64 or arm64
#
# Whatever is run here runs on this machine's processor, for the image's: no emulator is needed.
#
# Where wheels lie ready, made by the base's version of Python for the image's processor, nothing is compiled or downloaded:
#
#   docker build --build-context wheels=FOLDER --tag edgeshare .
#
# What pip has to know to reach PyPI, a mirror for example: --secret id=pip.conf,src=FILE
ARG BUILDER=python:3.11-bookworm
ARG BASE=python:3.11-slim-bookworm

FROM --platform=$BUILDPLATFORM ${BUILDER} AS builder
ARG TARGETARCH
WORKDIR /source
# First what all is made with, which changes more rarely than the sources. `ziglang` builds the hook for the oldest C
# library that a workload may have, glibc 2.17, and all that is compiled where that is for another processor. By
# `_PYTHON_HOST_PLATFORM` pip takes the wheels of that one, and setup.py knows of it.
COPY requirements.txt requirements-dev.txt ./
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
    awk '/^[^ ]/ { of_zig = /^ziglang==/ } of_zig' requirements-dev.txt >/zig.txt \
 && echo "linux-$(echo "${TARGETARCH:-$(uname -m)}" | sed 's/amd64/x86_64/; s/arm64/aarch64/')" >/platform \
 && python3 -m venv /build \
 && _PYTHON_HOST_PLATFORM="$(cat /platform)" /build/bin/python -m pip wheel \
      --quiet --require-hashes --requirement requirements.txt --wheel-dir /wheels \
 && /build/bin/python -m pip install --quiet --require-hashes --requirement requirements.txt --requirement /zig.txt
COPY . .
RUN _PYTHON_HOST_PLATFORM="$(cat /platform)" /build/bin/python -m pip wheel \
      --quiet --no-build-isolation --no-deps --wheel-dir /wheels .

FROM scratch AS wheels
COPY --from=builder /wheels /

# What the images have, made by a base of this machine's processor. Python's compiled files are the same on both, and no time of a
# source stands in them: where files are copied from one stage to another, some builders round those.
FROM --platform=$BUILDPLATFORM ${BASE} AS installed
ARG TARGETARCH
# pip runs from its own wheel: the base may have none, and the images need none.
RUN --mount=type=bind,from=wheels,source=/,target=/wheels \
    echo "linux-$(echo "${TARGETARCH:-$(uname -m)}" | sed 's/amd64/x86_64/; s/arm64/aarch64/')" >/platform \
 && python3 -m venv --without-pip /opt/edgeshare \
 && _PYTHON_HOST_PLATFORM="$(cat /platform)" PYTHONPATH="$(echo /wheels/pip-*.whl)" /opt/edgeshare/bin/python -m pip install \
      --quiet --no-cache-dir --no-compile --no-index --find-links /wheels edgeshare \
 && /opt/edgeshare/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/edgeshare/lib
# What is there already is not put into the other folder again.
RUN --mount=type=bind,from=wheels,source=/,target=/wheels \
    _PYTHON_HOST_PLATFORM="$(cat /platform)" PYTHONPATH="$(echo /wheels/pip-*.whl)" /opt/edgeshare/bin/python -m pip install \
      --quiet --no-cache-dir --no-compile --no-index --find-links /wheels --root /added 'edgeshare[cluster]' \
 && /opt/edgeshare/bin/python -m compileall -q --invalidation-mode unchecked-hash -s /added -p / /added/opt/edgeshare/lib

# Named, as with buildah 1.28 a stage's platform is that of those after it.
FROM --platform=$TARGETPLATFORM ${BASE} AS node
ENV PATH=/opt/edgeshare/bin:/usr/local/bin:/usr/bin:/bin
COPY --from=installed /opt/edgeshare /opt/edgeshare
ENTRYPOINT ["edgeshare"]

FROM node AS cluster
COPY --from=installed /added/opt/edgeshare /opt/edgeshare
