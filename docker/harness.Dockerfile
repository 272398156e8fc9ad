# The harness: docker run --rm --network host kidx/harness run -i wire:HOST:PORT --kafka RELEASE
#
#   docker/build-harness.sh                   assembles the context and builds kidx/harness
#   docker/build-harness.sh --base python:3.13-slim

# Any image with Python 3.11 or newer and its venv. Where public images cannot be pulled, docker/build-harness.sh has
# docker/build-base.sh make one.
ARG BASE_IMAGE=python:3.13-slim
FROM ${BASE_IMAGE}

# Set to 1 where the context has all wheels, so that the build needs no network.
ARG PIP_NO_INDEX
COPY wheels /tmp/wheels
RUN python3 -m venv /opt/kidx \
    && /opt/kidx/bin/pip install --no-cache-dir --disable-pip-version-check --find-links /tmp/wheels 'kidx[broker]' \
    && rm -r /tmp/wheels \
    && install -d -m 1777 /var/lib/kidx /work

# Traces and Kafka's jars go there; any user may write, so that --user "$(id -u)" owns the reports in /work.
ENV HOME=/var/lib/kidx \
    PATH=/opt/kidx/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LABEL org.opencontainers.image.title="conformance"

# Of no account on any system, as in the brokers' image.
USER 10001:10001
WORKDIR /work
VOLUME /var/lib/kidx
ENTRYPOINT ["conformance"]
CMD ["--help"]
