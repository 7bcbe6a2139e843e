# One image for servers, agents and ipamctl. State lies in /var/lib/ipamd, the node socket in /run/ipamd.
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY ipamd ipamd
COPY cli cli
COPY contrib/cni-static contrib/cni-static
COPY migrations migrations
RUN python -m venv /opt/ipamd && /opt/ipamd/bin/pip install --no-cache-dir .
# The static plugin ready-made, as the image has no compiler: `ipamctl cni install --static` looks here first.
RUN mkdir -p /opt/ipamd/libexec/ipamd && /opt/ipamd/bin/ipamctl cni install --static --bin-dir /tmp \
    && mv /tmp/ipamd "/opt/ipamd/libexec/ipamd/cni-static-$(uname -m)"

FROM python:3.13-slim
COPY --from=build /opt/ipamd /opt/ipamd
ENV PATH=/opt/ipamd/bin:$PATH PYTHONDONTWRITEBYTECODE=1
RUN useradd --system --uid 7480 --home-dir /var/lib/ipamd ipamd \
    && install -d -o ipamd -g ipamd -m 0700 /var/lib/ipamd /run/ipamd /tls
USER ipamd
VOLUME /var/lib/ipamd
EXPOSE 7480 7481
STOPSIGNAL SIGTERM
ENTRYPOINT ["ipamd"]
CMD ["serve"]
