# One image for servers, agents and ipamctl. State lies in /var/lib/ipamd, the node socket in /run/ipamd.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY ipamd ipamd
COPY cli cli
COPY migrations migrations
RUN python -m venv /opt/ipamd && /opt/ipamd/bin/pip install --no-cache-dir .

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
