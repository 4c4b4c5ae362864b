# syntax=docker/dockerfile:1
# Three stages: what is built, what runs, and what only building takes stays behind. Build arguments:
#   PYTHON  the base, with Python 3.11 or newer
#   LIBTPU  yes: with Google's TPU compiler (700 MB, under Google's terms), so that `chipledger compile` works
#   XPROF   yes: with XProf's own tools (118 MB)
#   S3      yes: with what asks storage that speaks S3, for a store in a bucket
#   CPU     what kernels are compiled for, as LLVM calls it: x86-64-v3 has AVX2; generic runs everywhere, also on ARM
# Where packages come from a mirror, its pip.conf is the secret `pip` of the build, and the certificates that it is asked
# with may be the secret `ca`, which that file calls /run/secrets/ca: neither is in a layer.
ARG PYTHON=python:3.12-slim

FROM ${PYTHON} AS build
ARG LIBTPU=no
ARG XPROF=no
ARG S3=no
ARG CPU=x86-64-v3
ENV NUMBA_CPU_NAME=$CPU NUMBA_CPU_FEATURES="" PIP_CONFIG_FILE=/run/secrets/pip
WORKDIR /src
COPY requirements-run.lock requirements-xprof.lock requirements-s3.lock requirements-tpu.lock ./
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    python3 -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements-run.lock \
    && { [ "$XPROF" != yes ] || /venv/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements-xprof.lock; } \
    && { [ "$S3" != yes ] || /venv/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements-s3.lock; } \
    && { [ "$LIBTPU" != yes ] || /venv/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements-tpu.lock; }
COPY requirements-make.lock requirements-audit.lock ./
# what makes the docs, the wheel and the list of parts: never in the image that runs
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    python3 -m venv --system-site-packages /make \
    && echo "$(ls -d /venv/lib/python3*/site-packages)" > "$(ls -d /make/lib/python3*/site-packages)/run.pth" \
    && /make/bin/pip install --no-cache-dir --require-hashes -r requirements-make.lock \
    && python3 -m venv /audit \
    && /audit/bin/pip install --no-cache-dir --require-hashes -r requirements-audit.lock
COPY . .
RUN /make/bin/python -m app.manual \
    && /make/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /venv/bin/pip install --no-cache-dir --no-compile --no-deps /wheel/*.whl
# Compiled kernels lie beside the sources: for a kind of processor, not for that of whoever builds. What compiled them is
# no part of what runs
RUN /venv/bin/python deploy/image/slim.py /venv \
    && cd / && /venv/bin/python -m app.kernels \
    && /venv/bin/python /src/deploy/image/without_numba.py \
    && /audit/bin/cyclonedx-py environment --output-reproducible --output-format JSON --output-file /venv/sbom.cdx.json /venv/bin/python \
    && /venv/bin/python /src/deploy/image/compiled.py

FROM ${PYTHON}
ARG CPU=x86-64-v3
RUN useradd --create-home --uid 10001 chipledger && mkdir /data && chown chipledger /data && chmod 700 /data
COPY --from=build /venv /venv
# what lies in the store is never looked through for code
WORKDIR /
ENV PYTHONSAFEPATH=1 PATH=/venv/bin:$PATH CHIPLEDGER_STORE=/data PYTHONUNBUFFERED=1 CHIPLEDGER_LOG=json \
    NUMBA_CPU_NAME=$CPU NUMBA_CPU_FEATURES=""
USER 10001
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["python", "-m", "app.operations.probe"]
# it starts once $CHIPLEDGER_IDENTITY names who is known by what, or $CHIPLEDGER_OPEN_TO_ALL is 1: docs/team.md
CMD ["chipledger", "serve", "--host", "0.0.0.0", "--port", "8501"]
