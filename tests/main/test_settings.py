"""The settings: one table, four sources, all mistakes at once."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ipamd.core.model import Settings
from ipamd.settings import (
    AGENT_TABLE,
    TABLE,
    AgentConfig,
    Config,
    Endpoint,
    Host,
    SettingsError,
    load,
    load_agent,
    settings_options,
)
from ipamd.settings.page import page

ROOT = Path(__file__).resolve().parents[2]
HOST = Host("h1", is_container=False)


def mistakes(
    flags: dict[str, object] | None = None, environ: dict[str, str] | None = None, host: Host = HOST
) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(flags or {}, environ or {}, host)
    return caught.value.mistakes


def test_without_any_setting_a_server_is_complete() -> None:
    config = load({}, {}, HOST)
    assert config.data_dir == Path("/var/lib/ipamd")
    assert config.socket == Path("/run/ipamd/cni.sock")
    assert (str(config.listen), str(config.raft_listen)) == ("127.0.0.1:7480", "127.0.0.1:7481")
    assert (config.member_name, config.node_name) == ("h1", "h1")
    assert (config.advertise_url, str(config.advertise_raft)) == ("http://127.0.0.1:7480", "127.0.0.1:7481")
    assert config.first == Settings()
    assert not config.insecure
    assert (config.raft_min_timeout_ms, config.raft_max_timeout_ms) == (500, 1000)


def test_table_and_config_have_the_same_settings() -> None:
    own = {field.name for field in fields(Config)} - {"first"} | set(Settings.__struct_fields__)
    assert {setting.field for setting in TABLE} == own


def test_the_stronger_source_wins(tmp_path: Path) -> None:
    file = tmp_path / "ipamd.toml"
    file.write_text(
        'listen = "127.0.0.1:1"\nsocket = "/run/a"\ncooldown-s = 7\ninline-pools = false\nmember-name = "m"\n'
    )
    environ = {
        "IPAMD_CONFIG": str(file),
        "IPAMD_LISTEN": "127.0.0.1:2",
        "IPAMD_SOCKET": "/run/b",
        "IPAMD_NODE_NAME": "",
    }
    config = load({"listen": "127.0.0.1:3", "socket": None}, environ, HOST)
    assert config.listen == Endpoint("127.0.0.1", 3)
    assert config.socket == Path("/run/b")
    assert (config.first.cooldown_s, config.first.inline_pools) == (7, False)
    assert (config.member_name, config.node_name) == ("m", "m")


def test_all_mistakes_come_together_with_setting_source_and_value(tmp_path: Path) -> None:
    file = tmp_path / "ipamd.toml"
    file.write_text('cooldown-s = "soon"\nlisten-on = "x"\ncooldown_min = 3\nevents-max = true\n')
    found = mistakes(
        {"config": str(file), "raft_min_timeout_ms": "0", "listen": "nowhere"}, {"IPAMD_LOG_FORMAT": "xml"}
    )
    text = "\n".join(found)
    assert len(found) == 7
    assert f"cooldown-s: 'soon' is not a whole number (file {file})" in found
    assert f"listen-on: there is no such setting (file {file}); did you mean listen?" in found
    assert "events-max: true is not a whole number" in text
    assert "raft-min-timeout-ms: '0' is not between 50 and 60000 (flag --raft-min-timeout-ms)" in found
    assert "listen: 'nowhere' is not HOST:PORT (IPv6 in brackets) (flag --listen)" in found
    assert "log-format: 'xml' is none of json, text (environment IPAMD_LOG_FORMAT)" in found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data_dir", "a\nb"),
        ("socket", "/" + "s" * 107),
        ("listen", "127.0.0.1"),
        ("listen", "127.0.0.1:65536"),
        ("listen", "::1:80"),
        ("listen", ":80"),
        ("listen", "[::1]80"),
        ("raft_listen", "127.0.0.1:-1"),
        ("member_name", "-n"),
        ("member_name", "n" * 129),
        ("node_name", "a:b"),
        ("cluster", "a/b"),
        ("advertise_raft", "host"),
        ("advertise_url", "ftp://h:1"),
        ("advertise_url", "http://h"),
        ("advertise_url", "http://h:1/path"),
        ("advertise_url", "http://u:p@h:1"),
        ("advertise_url", "http://h:99999"),
        ("insecure", "perhaps"),
        ("log_level", "loud"),
        ("cooldown_s", "-1"),
        ("cooldown_s", "1.5"),
        ("cooldown_s", "1" * 30),
        ("reclaim", "after:-1"),
        ("reclaim", "after"),
        ("reclaim", "after:59"),
        ("tombstone_s", "-1"),
        ("events_days", "0"),
        ("raft_max_timeout_ms", "0"),
        ("raft_heartbeat_ms", "0"),
        ("raft_fallback_ms", "soon"),
        ("join", "n1:7480"),
        ("tls_cert", ""),
    ],
)
def test_a_bad_value_is_refused_by_name(name: str, value: str) -> None:
    found = mistakes({name: value})
    assert len(found) == 1
    assert found[0].startswith(f"{name.replace('_', '-')}: ")
    assert f"(flag --{name.replace('_', '-')})" in found[0]


def test_a_long_value_is_not_repeated_whole() -> None:
    assert len(mistakes({"listen": "x" * 10_000})[0]) < 400


@pytest.mark.parametrize("flag", ["listen", "raft_listen"])
@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "[::]", "example.org"])
def test_beyond_loopback_needs_insecure(flag: str, host: str) -> None:
    found = mistakes({flag: f"{host}:80"})
    assert len(found) == 1
    assert "--insecure" in found[0]
    assert load({flag: f"{host}:80", "insecure": "true"}, {}, HOST).insecure


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "[::1]"])
def test_loopback_needs_nothing(host: str) -> None:
    assert load({"listen": f"{host}:80"}, {}, HOST).listen.is_loopback


def test_every_interface_is_advertised_by_the_hosts_name() -> None:
    config = load({"listen": "0.0.0.0:80", "insecure": True}, {}, HOST)
    assert config.advertise_url == "http://h1:80"
    given_url = load({"listen": "0.0.0.0:80", "insecure": True, "advertise_url": "http://x:1/"}, {}, HOST)
    assert given_url.advertise_url == "http://x:1"


def test_election_times_need_room_between_them() -> None:
    found = mistakes({"raft_min_timeout_ms": "900"})
    assert len(found) == 1
    assert "raft-max-timeout-ms 1000 (default)" in found[0]
    assert "raft-min-timeout-ms 900 (flag --raft-min-timeout-ms)" in found[0]
    assert load({"raft_min_timeout_ms": "900", "raft_max_timeout_ms": "1350"}, {}, HOST).raft_max_timeout_ms == 1350


def test_one_port_cannot_serve_both() -> None:
    assert len(mistakes({"listen": "127.0.0.1:7481"})) == 1
    assert load({"listen": "127.0.0.1:0", "raft_listen": "127.0.0.1:0"}, {}, HOST).listen.port == 0


@pytest.mark.parametrize(
    ("flags", "host", "is_refused"),
    [
        ({}, Host("localhost", is_container=False), True),
        ({}, Host("localhost.localdomain", is_container=False), True),
        ({"member_name": "localhost"}, HOST, True),
        ({"member_name": "localhost", "node_name": "a"}, HOST, False),
        ({}, Host("3f2a91", is_container=True), True),
        ({"node_name": "a"}, Host("3f2a91", is_container=True), False),
        ({"member_name": "a"}, Host("3f2a91", is_container=True), False),
        ({}, Host("bad name", is_container=False), True),
    ],
)
def test_a_node_name_that_changes_by_itself_must_be_given(
    flags: dict[str, object], host: Host, is_refused: bool
) -> None:
    if is_refused:
        assert len(mistakes(flags, host=host)) == 1
    else:
        assert load(flags, {}, host).node_name


@pytest.mark.parametrize("content", [b"listen = ", b"\xff\xfe", b"a = 1\na = 2"])
def test_a_file_that_is_not_toml_is_a_mistake(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad.toml"
    file.write_bytes(content)
    assert str(file) in mistakes({"config": str(file)})[0]


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    assert "cannot be read" in mistakes({"config": str(tmp_path / "none")})[0]


@given(st.dictionaries(st.sampled_from([setting.field for setting in TABLE if setting.name != "config"]), st.text()))
def test_no_text_makes_anything_but_a_config_or_mistakes(flags: dict[str, object]) -> None:
    try:
        assert isinstance(load(flags, {}, HOST), Config)
    except SettingsError as error:
        assert error.mistakes  # noqa: PT017 - either answer is right


def test_every_setting_is_a_flag_with_its_variable_in_the_help() -> None:
    @click.command()
    @settings_options
    def command(**flags: object) -> None:
        click.echo(repr(sorted((name, value) for name, value in flags.items() if value not in (None, ()))))

    text = CliRunner().invoke(command, ["--help"]).output
    squeezed = "".join(text.split())
    for setting in TABLE:
        assert setting.flag in text
        assert setting.variable in squeezed
    given_flags = CliRunner().invoke(command, ["--listen", "x", "--no-inline-pools", "--insecure"]).output
    assert given_flags.strip() == repr([("inline_pools", False), ("insecure", True), ("listen", "x")])


def test_the_reference_page_is_current() -> None:
    assert (ROOT / "docs/reference/settings.md").read_text() == page()


N1, N2, N3 = (f"n{n}=127.0.0.{n}:7481,http://127.0.0.{n}:7480" for n in (1, 2, 3))
FILES: dict[str, object] = {"tls_cert": "/c", "tls_key": "/k", "tls_ca": "/a"}


def test_peers_come_from_every_source(tmp_path: Path) -> None:
    file = tmp_path / "ipamd.toml"
    file.write_text(f'peer = ["{N1}", "{N2}"]\n')
    own: dict[str, object] = {"insecure": True, "member_name": "n2"}
    in_file = load({"config": str(file), **own}, {}, HOST)
    assert in_file.peer is not None
    assert [str(peer) for peer in in_file.peer] == [N1, N2]
    in_environment = load(own, {"IPAMD_PEER": f"{N1} {N2}\n{N3}"}, HOST)
    assert in_environment.peer is not None
    assert [peer.name for peer in in_environment.peer] == ["n1", "n2", "n3"]
    on_command_line = load({"peer": (N1, N2), **own}, {"IPAMD_PEER": N3}, HOST)
    assert on_command_line.peer == in_file.peer
    assert load({"peer": ()}, {}, HOST).peer is None


def test_the_own_peer_is_how_others_reach_this_member() -> None:
    config = load({"peer": (N1, N2), "member_name": "n2", "insecure": True}, {}, HOST)
    assert (str(config.advertise_raft), config.advertise_url) == ("127.0.0.2:7481", "http://127.0.0.2:7480")
    elsewhere = load({"peer": (N1, N2), "member_name": "n9", "insecure": True}, {}, HOST)
    assert (str(elsewhere.advertise_raft), elsewhere.advertise_url) == ("127.0.0.1:7481", "http://127.0.0.1:7480")
    stronger = load({"peer": (N1, N2), "member_name": "n2", "insecure": True, "advertise_url": "http://h:1"}, {}, HOST)
    assert (str(stronger.advertise_raft), stronger.advertise_url) == ("127.0.0.2:7481", "http://h:1")


@pytest.mark.parametrize(
    "peer",
    ["n1", "n1=127.0.0.1:1", "n1=127.0.0.1,http://h:1", "=h:1,http://h:1", "n1=h:1,h:1", "a b=h:1,http://h:1"],
)
def test_a_bad_peer_is_shown(peer: str) -> None:
    found = mistakes({"peer": (N1, peer), "insecure": True})
    assert len(found) == 1
    assert found[0].startswith("peer: ")
    assert repr(peer) in found[0]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"peer": (N1, N2)}, "on loopback --insecure will do"),
        ({"join": "http://127.0.0.1:1", "token_file": "/t"}, "on loopback --insecure will do"),
        ({"peer": (N1, "n2=192.0.2.2:1,http://h:1"), "insecure": True}, "192.0.2.2:1 is not loopback"),
        ({"peer": (N1, N2), "raft_listen": "0.0.0.0:1", "insecure": True}, "0.0.0.0:1 is not loopback"),
        ({"join": "http://h:1", "raft_listen": "192.0.2.1:1", "insecure": True}, "192.0.2.1:1 is not loopback"),
        ({"peer": (N1, "n1=127.0.0.9:1,http://h:1"), "insecure": True}, "two of them have the name n1"),
        ({"peer": (N1, "n2=127.0.0.1:7481,http://h:1"), "insecure": True}, "two of them have the Raft address"),
        ({"peer": (N1, "n2=127.0.0.2:1,http://127.0.0.1:7480"), "insecure": True}, "two of them have the URL"),
        ({"peer": (N1, N2), "join": "http://h:1", "insecure": True}, "give one of them"),
        ({"join": "https://h:1", **FILES}, "needs --token-file"),
        ({"tls_cert": "/c", "tls_key": "/k"}, "tls-ca: must be given too"),
        ({"peer": (N1, N2), **FILES}, "does not begin with https://"),
        ({"peer": ("n1=127.0.0.1:1,https://h:1",), "insecure": True}, "does not begin with http://"),
    ],
)
def test_what_several_servers_need(flags: dict[str, object], sentence: str) -> None:
    found = mistakes(flags)
    assert len(found) == 1, found
    assert sentence in found[0]


def test_certificates_allow_all_interfaces_and_peers() -> None:
    config = load(
        {"listen": "0.0.0.0:80", "raft_listen": "0.0.0.0:81", "peer": ("n1=h:1,https://h:2",), **FILES}, {}, HOST
    )
    assert config.has_tls
    assert config.meets_peers
    assert config.advertise_url == "https://h1:80"
    assert not load({}, {}, HOST).meets_peers
    assert load({"insecure": True}, {}, HOST).meets_peers
    assert not load({"insecure": True, "raft_listen": "0.0.0.0:1"}, {}, HOST).meets_peers


def test_times_fit_each_other() -> None:
    assert load({}, {}, HOST).raft_fallback_ms == 1000
    assert load({"raft_max_timeout_ms": "3000"}, {}, HOST).raft_fallback_ms == 3000
    (heartbeat,) = mistakes({"raft_heartbeat_ms": "200"})
    assert "must be at most a third of raft-min-timeout-ms 500" in heartbeat
    (fallback,) = mistakes({"raft_fallback_ms": "400"})
    assert "must not be below raft-min-timeout-ms 500" in fallback
    assert len(mistakes({"raft_heartbeat_ms": "200", "raft_fallback_ms": "400", "raft_max_timeout_ms": "600"})) == 3


def test_an_agent_needs_servers_and_nothing_else() -> None:
    config = load_agent({"server": ("https://a:7480", "https://b")}, {}, HOST)
    assert config.server == ("https://a:7480", "https://b:7480")
    assert (config.node_name, config.full_name, config.del_policy) == ("h1", "h1", "spool")
    assert (config.socket, config.spool_dir) == (Path("/run/ipamd/cni.sock"), Path("/var/lib/ipamd/spool"))


def test_the_agents_table_and_config_have_the_same_settings() -> None:
    assert {setting.field for setting in AGENT_TABLE} == {field.name for field in fields(AgentConfig)}


def test_a_setting_of_both_is_the_same_in_both() -> None:
    of_server = {setting.name: setting for setting in TABLE}
    shared = [setting for setting in AGENT_TABLE if setting.name in of_server]
    assert len(shared) > 5
    assert all(setting.kind is of_server[setting.name].kind for setting in shared)


def test_the_agents_servers_come_from_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text('server = ["https://c:1"]\ndel-policy = "error"\n')
    environ = {"IPAMD_CONFIG": str(file), "IPAMD_CLUSTER": "blue"}
    config = load_agent({}, environ, HOST)
    assert (config.server, config.del_policy, config.full_name) == (("https://c:1",), "error", "blue:h1")
    environ["IPAMD_SERVER"] = "https://a:1 https://b:2,https://a:1"
    assert load_agent({}, environ, HOST).server == ("https://a:1", "https://b:2")


@pytest.mark.parametrize(
    ("flags", "host", "sentence"),
    [
        ({}, HOST, "server: must be given"),
        ({"server": ("https://a",)}, Host("localhost", is_container=False), "node-name: must be given, because"),
        ({"server": ("https://a",)}, Host("h1", is_container=True), "node-name: must be given .* inside a container"),
        (
            {"server": ("https://a",)},
            Host("-h", is_container=False),
            "node-name: must be given, because the host's name",
        ),
        ({"server": ("https://a/x",)}, HOST, "server: .* has 'https://a/x', which is not a URL"),
        ({"server": ("https://a", "unix:/x")}, HOST, "has 'unix:/x'"),
        ({"server": ("https://a",), "del_policy": "drop"}, HOST, "del-policy: 'drop' is none of spool, error"),
    ],
)
def test_an_agents_mistakes(flags: dict[str, object], host: Host, sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence) as caught:
        load_agent(flags, {}, host)
    assert len(caught.value.mistakes) == 1


def test_a_servers_spool_lies_in_its_data() -> None:
    assert load({"data_dir": "/srv/i"}, {}, HOST).spool_dir == Path("/srv/i/spool")
    assert load({"data_dir": "/srv/i", "spool_dir": "/srv/s"}, {}, HOST).spool_dir == Path("/srv/s")
