"""Owns CNI_ARGS: the pod data that a runtime hands over, as `KEY=VALUE` pairs parted by semicolons."""

from __future__ import annotations

from dataclasses import dataclass

from ipamd.cni.errors import BAD_ENVIRONMENT, CniError
from ipamd.core.names import InvalidName, check_pod_uid, pod_ref_of, split_pod_ref


@dataclass(frozen=True, slots=True)
class PodArgs:
    """What the arguments say of the pod. `pod_ref` None: they name none; `ip` is unread, empty where absent."""

    pod_ref: str | None = None
    pod_uid: str | None = None
    ip: str = ""


def parse_args(text: str) -> PodArgs:
    """Read the arguments; unknown keys and empty pairs are ignored. Raises CniError with code 4."""
    pairs = _pairs(text)
    try:
        return PodArgs(_pod_ref(pairs), _pod_uid(pairs), pairs.get("IP", ""))
    except InvalidName as error:
        raise CniError(BAD_ENVIRONMENT, f"CNI_ARGS: {error}") from None


def _pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for pair in text.split(";"):
        if not pair:
            continue
        key, equals, value = pair.partition("=")
        if not key or not equals or "=" in value:
            raise CniError(BAD_ENVIRONMENT, f"CNI_ARGS: {pair[:64]!r} is not KEY=VALUE")
        pairs[key] = value
    return pairs


def _pod_ref(pairs: dict[str, str]) -> str | None:
    given = pairs.get("IPAMD_POD_REF")
    if given:
        split_pod_ref(given, "IPAMD_POD_REF")
        return given
    namespace, name = pairs.get("K8S_POD_NAMESPACE"), pairs.get("K8S_POD_NAME")
    return pod_ref_of(namespace, name) if namespace and name else None


def _pod_uid(pairs: dict[str, str]) -> str | None:
    uid = pairs.get("K8S_POD_UID")
    return check_pod_uid(uid, "K8S_POD_UID") if uid else None
