# syntax=docker/dockerfile:1
FROM python:3.12-slim AS build
WORKDIR /app
COPY requirements.lock pyproject.toml ./
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
# compiled kernels are kept beside the sources, so that a container does not compile them at its first upload
RUN /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && /venv/bin/python -m app.kernels \
    && /venv/bin/python -m app.manual

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 chipledger && mkdir /data && chown chipledger /data
COPY --from=build /venv /venv
COPY --from=build --chown=chipledger /app /app
WORKDIR /app
ENV PATH=/venv/bin:$PATH CHIPLEDGER_STORE=/data PYTHONUNBUFFERED=1
USER chipledger
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
# it starts once $CHIPLEDGER_IDENTITY names who is known by what, or $CHIPLEDGER_OPEN_TO_ALL is 1: docs/team.md
CMD ["chipledger", "serve", "--host", "0.0.0.0", "--port", "8501"]
