# One image for every part of edgeshare: its command is `edgeshare`, its arguments say which part.
#
# It installs the wheels that the build context brings along, so that a build needs neither a network nor a compiler:
#
#   make setup
#   .venv/bin/python -m pip wheel --require-hashes --requirement requirements.txt --wheel-dir wheels
#   .venv/bin/python -m pip wheel --no-build-isolation --no-deps --wheel-dir wheels .
#   docker build -t edgeshare .
#
# (Set-up brings `ziglang`, which builds the hook for the oldest C library that a workload may have, glibc 2.17.)
# The wheels have to be made by the Python version of the base (here 3.11), on its architecture.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE}
# pip runs from its own wheel: the base may have none, and the image needs none.
RUN --mount=type=bind,source=wheels,target=/wheels \
    python3 -m venv --without-pip /opt/edgeshare \
 && PYTHONPATH="$(echo /wheels/pip-*.whl)" /opt/edgeshare/bin/python -m pip install \
      --quiet --no-cache-dir --no-index --find-links /wheels 'edgeshare[cluster]'
ENV PATH=/opt/edgeshare/bin:/usr/local/bin:/usr/bin:/bin
ENTRYPOINT ["edgeshare"]
