# One image for servers, agents and ipamctl. State lies in /var/lib/ipamd, the node socket in /run/ipamd.
# What is installed is locked with hashes, and so is what runs while it is built (`make lock` writes both files anew).
ARG DEBIAN=docker.io/library/debian:12.12-slim

FROM ${DEBIAN} AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates gcc libc6-dev python3 python3-venv
WORKDIR /source
COPY contrib/docker/build.lock contrib/docker/requirements.lock contrib/docker/
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/ipamd \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r contrib/docker/build.lock \
    && /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --require-hashes -r contrib/docker/requirements.lock -w /wheels
COPY pyproject.toml README.md LICENSE ./
COPY ipamd ipamd
COPY cli cli
COPY contrib/cni-static contrib/cni-static
COPY migrations migrations
RUN /opt/build/bin/pip wheel --no-index --no-deps --no-build-isolation . -w /wheels \
    && /opt/build/bin/pip --python /opt/ipamd/bin/python install --no-index --no-deps /wheels/*.whl
# The static plugin ready-made, as the image has no compiler: `ipamctl cni install --static` looks here first.
RUN mkdir -p /opt/ipamd/libexec/ipamd && /opt/ipamd/bin/ipamctl cni install --static --bin-dir /tmp \
    && mv /tmp/ipamd "/opt/ipamd/libexec/ipamd/cni-static-$(uname -m)"
COPY contrib/docker/healthy.py /opt/ipamd/libexec/ipamd/

FROM ${DEBIAN}
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/*
COPY --from=build /opt/ipamd /opt/ipamd
ENV PATH=/opt/ipamd/bin:$PATH PYTHONDONTWRITEBYTECODE=1
RUN useradd --uid 7480 --no-create-home --home-dir /var/lib/ipamd --shell /usr/sbin/nologin ipamd \
    && install -d -o ipamd -g ipamd -m 0700 /var/lib/ipamd /run/ipamd \
    && install -d /opt/cni/bin && ipamctl cni install --static
USER ipamd
VOLUME /var/lib/ipamd
EXPOSE 7480 7481
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["python3", "-I", "-S", "/opt/ipamd/libexec/ipamd/healthy.py"]
ENTRYPOINT ["ipamd"]
CMD ["serve"]
